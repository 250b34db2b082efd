# Operators of torchvision. Read by nn_cases.py; the operators must be registered (import torchvision, or AIT_TORCHVISION=its _C library).
if os.environ.get("AIT_TORCHVISION"): [torch.ops.load_library(p) for p in os.environ["AIT_TORCHVISION"].split(":")]
else: import torchvision
def vision(op, *args, tol=None):
    out = getattr(torch.ops.torchvision, op).default(*args)
    cases.append({"op": "torchvision." + op, "args": [encode(a) for a in args], "out": results(out if isinstance(out, tuple) else [out], tol, False)})
u = torch.rand
def boxes(n, size): a = u(n, 2) * size; return torch.cat([a, a + u(n, 2) * size / 2 + 0.1], 1)
for n, th in ((40, 0.3), (40, 0.7), (40, 0.0), (1, 0.5), (0, 0.5)): vision("nms", boxes(n, 10.0), u(n), th)
vision("nms", torch.tensor([[0.0, 0, 2, 2], [0, 0, 2, 2], [1, 1, 3, 3], [5, 5, 6, 6]]), torch.tensor([0.5, 0.5, 0.9, 0.5]), 0.5)
x = r(2, 3, 9, 11)
def rois(n, size): return torch.cat([torch.randint(0, 2, (n, 1)).float(), boxes(n, size)], 1)
for al in (False, True):
    for sr in (-1, 2): vision("roi_align", x, rois(5, 20.0), 0.5, 3, 2, sr, al, tol=(1e-4, 1e-5))
edge = torch.tensor([[0.0, -3, -3, 30, 30], [1, 8, 8, 4, 4], [1, 40, 40, 50, 50], [0, 10.9, 8.9, 11, 9]])
vision("roi_align", x, edge, 1.0, 2, 2, 2, True, tol=(1e-4, 1e-5)); vision("roi_align", x, edge, 1.0, 2, 2, -1, False, tol=(1e-4, 1e-5)); vision("roi_align", x, torch.zeros(0, 5), 1.0, 2, 2, 2, True)
for q in (rois(5, 20.0), edge): vision("roi_pool", x, q, 0.5, 3, 2)
y = r(2, 12, 7, 8)
for q in (rois(5, 16.0), edge[:1]): vision("ps_roi_pool", y, q, 0.5, 2, 3); vision("ps_roi_align", y, q, 0.5, 2, 3, 2, tol=(1e-4, 1e-5)); vision("ps_roi_align", y, q, 0.5, 3, 2, -1, tol=(1e-4, 1e-5))
for g, og, m in ((1, 1, True), (2, 2, True), (1, 4, False)):
    h, w = (7 + 2 - 2 - 1) // 2 + 1, (8 + 4 - 2 - 1) // 1 + 1
    vision("deform_conv2d", r(2, 4, 7, 8), r(6, 4 // g, 3, 2), r(2, og * 12, h, w - 0) * 2, u(2, og * 6, h, w) if m else torch.zeros(2, 1), r(6), 2, 1, 1, 2, 1, 2, g, og, m, tol=(1e-4, 1e-5))
