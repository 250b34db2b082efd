"""Small models for the tests of the package, as graphs in text form: no torch is needed to make them."""
import ait


def text_model(folder, text, name="m", **options):
    path = folder / f"{name}.txt"
    path.write_text(text)
    return ait.load(path, **options)


def clone(folder, dtype, **options):
    """Any tensor of that dtype of rank 2, copied."""
    text = (f'graph "clone" raw producer "test"\nsymbol s0 [0, 4096] hint 4 backed\nsymbol s1 [0, 4096] hint 4 backed\n'
            f'input %x: {dtype}[s0, s1] user 0 "x"\n%y: {dtype}[s0, s1] = aten.clone(%x)\noutput user 0 "y" = %y\n')
    return text_model(folder, text, f"clone-{dtype}", **options)


def add(folder, **options):
    """x + y * 2, of rank 1."""
    text = ('graph "add" core producer "test"\nsymbol s0 [0, 65536] hint 4 backed\ninput %x: float32[s0] user 0 "x"\ninput %y: float32[s0] user 1 "y"\n'
            '%z: float32[s0] = add(%x, %y)\n%w: float32[s0] = add(%z, %y)\noutput user 0 "sum" = %w\noutput user 1 "half" = %z\n')
    return text_model(folder, text, "add", **options)
