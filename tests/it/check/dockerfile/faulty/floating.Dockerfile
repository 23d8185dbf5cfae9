FROM --platform=linux/amd64 pytorch/pytorch:latest AS train
COPY --from=ghcr.io/astral-sh/uv:latest /uv /usr/local/bin/uv
WORKDIR /app

FROM ubuntu
COPY --from=train /app /app
