FROM nvidia/cuda
RUN pip install torch==2.4.0 --index-url https://download.pytorch.org/whl/cu125
RUN pip install torchvision --extra-index-url https://download.pytorch.org/whl/cu127/
FROM nvidia/cuda:latest
RUN pip install torch==2.4.0+cu122
