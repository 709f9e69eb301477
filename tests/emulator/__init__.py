"""Runs the CUDA kernels of ``kernels/`` on the CPU, so that they are tested where there is no GPU.

`cupy_on_host` stands in for CuPy: its arrays are NumPy arrays that refuse to mix with host arrays,
its kernels are compiled by the C++ compiler of this machine with `cuda_on_host.h`, which runs the
threads of a block as fibers in an order drawn anew for each block.
"""
