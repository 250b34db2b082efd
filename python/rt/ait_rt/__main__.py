"""python -m ait_rt MODEL.ait [-i IN -o OUT.npz]: what a file takes and gives; one call of it."""
from __future__ import annotations

import argparse
import sys

import ait_rt


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m ait_rt", description="What a .ait file takes and gives, or one call of it.")
    parser.add_argument("model", help="a .ait file")
    parser.add_argument("-i", "--input", help="arrays by name: .npz, .npy, .safetensors")
    parser.add_argument("-o", "--output", help="where the results go: .npz")
    parser.add_argument("--threads", type=int, default=0)
    args = parser.parse_args()
    try:
        model = ait_rt.load(args.model, threads=args.threads)
        if args.input is None:
            print(model.__doc__)
            return 0
        results = model.run(args.input)
        if args.output:
            ait_rt.save_arrays(args.output, results)
        for name, value in results.items():
            print(f"{name}: {value.dtype} {list(value.shape)}" if hasattr(value, "shape") else f"{name}: {value!r}")
    except ait_rt.Error as error:
        print(f"ait: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
