FROM mambaorg/micromamba:1.5.8-jammy-cuda-12.1.1
COPY --chown=$MAMBA_USER:$MAMBA_USER environment.yml /tmp/environment.yml
RUN micromamba install -y -n base -f /tmp/environment.yml \
 && micromamba install -y -n base -c pytorch -c nvidia pytorch=2.3.0 pytorch-cuda=12.1 \
 && micromamba clean --all --yes
ARG MAMBA_DOCKERFILE_ACTIVATE=1
RUN pip install --no-deps wandb==0.17.0
