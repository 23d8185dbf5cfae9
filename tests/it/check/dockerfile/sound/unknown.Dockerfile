ARG BASE_TAG
ARG TARGETPLATFORM
FROM --platform=$TARGETPLATFORM nvidia/cuda:${BASE_TAG}
RUN pip install torch==2.3.0
FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04
RUN pip install "torch>=2.3,<3" -c constraints.txt
ENV NCCL_IB_CUDA_SUPPORT=1 PYTORCH_ALLOC_CONF=expandable_segments:True
FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04
RUN pip install torch==2.3.0 --index-url https://wheels.example/simple
FROM --platform=linux/arm64 nvidia/cuda:12.4.1-runtime-ubuntu22.04
RUN pip install torch==2.3.0
COPY --from=assets /models /models
