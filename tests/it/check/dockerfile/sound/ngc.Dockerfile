ARG RELEASE=24.05
FROM nvcr.io/nvidia/pytorch:${RELEASE}-py3 AS tools
FROM nvcr.io/nvidia/pytorch:24.05-py3
# The build of torch that is here has to stay.
RUN pip install --no-deps --no-cache-dir lightning torchmetrics && pip install "torch>=2.0" einops
ENV NCCL_DEBUG=WARN NCCL_IB_HCA=mlx5 NCCL_IB_TIMEOUT=22 NCCL_SOCKET_IFNAME=^lo,docker \
    NCCL_NVLS_ENABLE=0 NCCL_CROSS_NIC=1 NCCL_P2P_LEVEL=NVL TORCH_NCCL_AVOID_RECORD_STREAMS=1
CMD ["torchrun", "--nproc-per-node=8", "main.py"]
