import sys

import numpy as np

import ait

model = ait.load(sys.argv[1] if len(sys.argv) > 1 else "digits.ait")
image = np.zeros((1, 1, 8, 8), np.float32)
print(model(image).argmax())  # NumPy in, NumPy out; torch in, torch out
