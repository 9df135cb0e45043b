# The image of fdinit: one static file, /fdinit, to be copied into other images, mounted
# as a volume, or installed by an init container.
#
#   docker buildx build --platform linux/amd64,linux/arm64 --build-arg COMMIT=$(git rev-parse --short=7 HEAD) .
#
# The flags are the Makefile's: the same source and Go give the same bytes here as there.
ARG GO_VERSION=1.26
FROM --platform=$BUILDPLATFORM golang:${GO_VERSION} AS build
WORKDIR /src
COPY go.mod go.sum ./
COPY cmd cmd
COPY internal internal
ARG TARGETARCH
ARG TARGETVARIANT
ARG COMMIT
# GOARM is the number in arm/v7, and means nothing elsewhere.
RUN CGO_ENABLED=0 GOOS=linux GOARCH=${TARGETARCH} GOARM=${TARGETVARIANT#v} GOAMD64=v1 \
    go build -trimpath -buildvcs=false \
    -ldflags="-s -w -buildid= -E=github.com/fdinit/fdinit/internal/freestanding.Entry -X main.commit=${COMMIT}" \
    -o /fdinit ./cmd/fdinit

FROM scratch
COPY --from=build /fdinit /fdinit
# By number: there is no /etc/passwd, and Kubernetes cannot tell that a name is not root's.
USER 65532:65532
ENTRYPOINT ["/fdinit"]
CMD ["--help"]
