FROM nvidia/cuda:12.8.1-base-ubuntu24.04
RUN python3 -m venv /opt/venv
RUN /opt/venv/bin/pip install --pre torch torchvision --index-url https://download.pytorch.org/whl/nightly/cu128
RUN /opt/venv/bin/pip install --pre torch --extra-index-url https://download.pytorch.org/whl/nightly/cu125
