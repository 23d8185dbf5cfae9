# Nothing of this has to do with GPUs.
FROM node AS build
ARG CUDA_VERSION=1
ENV NCCL_TIMEOUT=1
RUN npm ci && npm run build
FROM nginx:latest
COPY --from=build /dist /usr/share/nginx/html
