"""Writes the files of malformed_more: variations that the set in malformed does not have. Usage: python make_more.py OUT_DIR"""
import sys, os, json, struct, zlib
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from make_malformed import *

MORE = []
def more(name, says, data): MORE.append((name, says, data))
S = lambda p: p["graph_module"]["signature"]
N = lambda p: G(p)["nodes"]

def run():
    good = good_c()
    more("prefix_bytes", "not where its end record says", b"#!/bin/sh\n" + good)
    more("trailing_bytes", "no end of central directory", good + b"xx")
    more("local_crc", "local header and directory disagree", good.replace(struct.pack("<I", zlib.crc32(f32(W))), struct.pack("<I", 7), 1))
    more("method_12", "compressed by method 12", make_zip(replace(entries(), "m/data/weights/weight_0", method=12)))
    more("fifo", "is a special file", make_zip(replace(entries(), "m/data/weights/weight_0", attr=0o010666 << 16)))
    more("backslash_dotdot", "leads out of the archive", make_zip(entries() + [Entry("m\\..\\..\\evil", b"x")]))
    more("drive", "absolute path", make_zip(entries() + [Entry("C:/evil", b"x")]))
    more("name_empty", "is empty", make_zip(entries() + [Entry("", b"x")]))
    more("count_small", "more than its end record says", make_zip(entries(), count=5))
    more("stored_sizes_differ", "its two sizes differ", make_zip(replace(entries(), "m/data/weights/weight_0", usize=40)))
    d = deflate(f32(W))
    more("deflate_cut", "is damaged", make_zip(replace(entries(), "m/data/weights/weight_0", method=DEFLATED, payload=d[:-4])))
    more("deflate_tail", "is damaged", make_zip(replace(entries(), "m/data/weights/weight_0", method=DEFLATED, payload=d + b"zz")))
    more("deflate_longer", "is damaged", make_zip(replace(entries(), "m/data/weights/weight_0", method=DEFLATED, payload=deflate(f32(W) + b"1234"), usize=48)))
    more("deflate_shorter", "is damaged", make_zip(replace(entries(), "m/data/weights/weight_0", method=DEFLATED, payload=deflate(f32(W)[:40]), usize=48)))
    more("deflate_crc", "CRC is wrong", make_zip(replace(entries(), "m/data/weights/weight_0", method=DEFLATED, crc=5)))
    z60, crc60 = zeros_deflated(60 << 20)
    big = [Entry(f"m/data/weights/big_{k}", b"", DEFLATED, payload=z60, usize=60 << 20, crc=crc60) for k in range(4)]
    conf = weights()
    more("bomb_several", "inflates to", make_zip(entries(conf=(conf["config"]["weight"].update(path_name="big_0"), conf["config"]["bias"].update(path_name="big_1"), conf)[-1]) + big))
    blank = b" " * (80 << 20)
    more("bomb_json", "inflates to", make_zip(replace(entries(), "m/models/model.json", data=b"{" + blank + b"}", method=DEFLATED)))
    more("json_wide", "values in arrays", make_zip(replace(entries(), "m/models/model.json", data=b"[" + b"0," * (12 << 20) + b"0]", method=DEFLATED)))
    more("two_roots", "two members 'archive_format'", make_zip(entries() + [Entry("n/archive_format", b"pt2")]))
    more("json_bom", "malformed at byte 0", good_c(model=b"\xef\xbb\xbf" + json.dumps(program()).encode()))
    more("json_twice", "one key twice", good_c(model=b'{"schema_version": 1, ' + json.dumps(program()).encode()[1:]))
    more("json_empty", "ends early", good_c(model=b""))
    more("schema_text", "schema_version", edit(lambda p: p.update(schema_version={"major": "8"})))
    more("size_float", "neither a number nor an expression", edit(lambda p: G(p)["tensor_values"]["x"]["sizes"].__setitem__(0, {"as_int": 1.5})))
    more("size_nan", "malformed at byte", good_c(model=json.dumps(program()).encode().replace(b'"dtype": 7', b'"dtype": nan', 1)))
    more("metadata_missing", "'linear' has no entry in tensor_values", edit(lambda p: G(p)["tensor_values"].pop("linear") and None))
    more("rank_17", "17 dimensions", edit(lambda p: G(p)["tensor_values"]["x"].update(sizes=[i(1)] * 17)))
    more("names_differ", "the signature says 'p_weight' where the graph says 'p_bias'", edit(lambda p: G(p)["inputs"].__setitem__(0, t("p_bias"))))
    more("output_names_differ", "the signature says", edit(lambda p: S(p)["output_specs"][0]["user_output"].update(arg=t("x"))))
    more("output_missing", "the graph has 0 outputs", edit(lambda p: G(p).update(outputs=[])))
    more("buffer_unknown", "'nope'", edit(lambda p: S(p)["output_specs"].__setitem__(0, {"buffer_mutation": {"arg": {"name": "linear"}, "buffer_name": "nope"}})))
    more("input_kind", "unknown kind 'wish'", edit(lambda p: S(p)["input_specs"].__setitem__(2, {"wish": {"arg": t("x")}})))
    more("torchbind", "TorchBind", edit(lambda p: S(p)["input_specs"].__setitem__(2, {"custom_obj": {"arg": {"name": "x", "class_fqn": "a.B"}, "custom_obj_name": "o"}})))
    more("argument_twice", "given twice", edit(lambda p: N(p)[0]["inputs"].append({"name": "bias", "arg": t("p_bias"), "kind": 1})))
    more("argument_kind", "wrong kind", edit(lambda p: N(p)[0]["inputs"][2].update(arg={"as_string": "x"})))
    more("argument_none", "must not be None", edit(lambda p: N(p)[0]["inputs"][1].update(arg={"as_none": True})))
    more("argument_dict", "as_string_to_argument", edit(lambda p: N(p)[0]["inputs"][2].update(arg={"as_string_to_argument": {}})))
    more("argument_absent", "exactly one tag", edit(lambda p: N(p)[0]["inputs"][2].pop("arg") and None))
    more("results_too_many", "2 results, the operator gives 1", edit(lambda p: (N(p)[0]["outputs"].append(t("x2")), G(p)["tensor_values"].update(x2=meta([1], [1])))[0]))
    more("target_missing", "without a target", edit(lambda p: N(p)[0].pop("target") and None))
    more("custom_unregistered", "custom operator 'mylib.foo' is not registered", edit(lambda p: N(p)[0].update(target="torch.ops.mylib.foo.default")))
    def nest(p):
        inner = {"inputs": [], "outputs": [], "nodes": [], "tensor_values": {}}
        for k in range(40):
            arg = {"name": "", "arg": {"as_graph": {"name": "g", "graph": inner}}, "kind": 1}
            inner = {"inputs": [], "outputs": [], "tensor_values": {}, "nodes": [{"target": "torch.ops.higher_order.wrap_with_set_grad_enabled", "inputs": [{"name": "", "arg": {"as_bool": False}, "kind": 1}, arg], "outputs": [], "metadata": {}, "name": "w"}]}
        N(p).append(inner["nodes"][0])
    more("graphs_deep", "nested deeper than", edit(nest))
    more("range_empty", "range of 's0' is empty", edit(lambda p: (G(p)["tensor_values"]["x"]["sizes"].__setitem__(0, {"as_expr": {"expr_str": "Symbol('s0', integer=True)", "hint": None}}), p.update(range_constraints={"s0": {"min_val": 5, "max_val": 4}}))[0]))
    more("spec_broken", "in_spec", edit(lambda p: p["graph_module"]["module_call_graph"][0]["signature"].update(in_spec="[1, {")))
    more("stride_negative", "out of bounds", edit(lambda w: M(w).update(strides=[i(-3), i(1)]), False))
    more("offset_negative", "out of bounds", edit(lambda w: M(w).update(storage_offset=i(-1)), False))
    more("rank_huge", "no sizes, or more than", edit(lambda w: M(w).update(sizes=[i(1)] * 40, strides=[i(1)] * 40), False))
    more("pickle_for_weight", "not a zip archive", edit(lambda w: w["config"]["weight"].update(use_pickle=True), False))
    more("dtype_differs", "'weight'", edit(lambda w: M(w).update(dtype=4), False))
    more("meta_absent", "TorchBind", edit(lambda w: w["config"]["weight"].update(tensor_meta=None), False))
    more("config_array", "no object 'config'", good_c(conf=[1]))
    more("pickle_weight_call", "a call of 'os system' where a tensor belongs", good_a(state(("weight", glob("os", "system") + b"(" + uni("touch ait-was-here") + b"tR"), ("bias", parameter("1", 4, [4], [1])))))
    more("pickle_missing_file", "'archive/data/7' is missing", good_a(state(("weight", parameter("7", 12, [4, 3], [3, 1])), ("bias", parameter("1", 4, [4], [1])))))
    more("pickle_strides_count", "2 sizes, but 1 strides", good_a(state(("weight", parameter("0", 12, [4, 3], [3])), ("bias", parameter("1", 4, [4], [1])))))
    more("pickle_out_of_bounds", "needs", good_a(state(("weight", parameter("0", 12, [4, 3], [300, 1])), ("bias", parameter("1", 4, [4], [1])))))
    more("pickle_storage_class", "storage class 'torch QuantStorage'", good_a(GOOD_STATE.replace(b"FloatStorage", b"QuantStorage", 1)))
    more("pickle_opcode", "opcode 0x96", good_a(b"\x80\x05\x96" + bytes(8) + b"."))
    more("pickle_int_huge", "beyond 64 bits", good_a(b"\x80\x02\x8a\x20" + b"\1" * 32 + b"."))
    more("pickle_cycle", "where a tensor belongs", good_a(b"\x80\x02}(" + uni("weight") + b"]q\0h\0a" + uni("bias") + b"h\0u."))
    more("state_not_zip", "not a zip archive", good_a(state_zip=b"no zip at all, but long enough to look like one"))
    more("state_empty", "'weight' is missing", good_a(state_zip=b""))

if __name__ == "__main__":
    run()
    out = sys.argv[1]
    os.makedirs(out, exist_ok=True)
    for name, says, data in MORE:
        with open(os.path.join(out, name + ".pt2"), "wb") as f: f.write(data)
    with open(os.path.join(out, "expected.tsv"), "w") as f:
        for name, says, _ in MORE: f.write(f"{name}\t{says}\n")
    print(len(MORE), "files")
