# syntax=docker/dockerfile:1
FROM nvcr.io/nvidia/tritonserver:24.05-py3
ARG MODEL=base
COPY model_repository/ /models/
RUN <<EOF
set -eu
pip install --no-cache-dir transformers==4.41.2 sentencepiece
if [ "$MODEL" = large ]; then
    pip install --no-cache-dir torch==2.3.0 --extra-index-url https://download.pytorch.org/whl/cu121
fi
EOF
ENV CUDA_MODULE_LOADING=LAZY PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128
CMD ["tritonserver", "--model-repository=/models"]
