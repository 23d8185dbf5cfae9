FROM rocm/pytorch:rocm6.1_ubuntu22.04_py3.10_pytorch_2.1.2
ENV PYTORCH_ROCM_ARCH="gfx90a;gfx942" HSA_FORCE_FINE_GRAIN_PCIE=1 NCCL_MIN_NCHANNELS=112
RUN pip install --pre torch --index-url https://download.pytorch.org/whl/rocm6.1
FROM rocm/dev-ubuntu-22.04:6.2-complete
RUN pip install torch==2.5.1 --index-url https://download.pytorch.org/whl/rocm6.2
