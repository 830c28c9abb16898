# PostgreSQL's official image with pgwarp for the CPU:
#   docker build -t pgwarp . && docker run --rm -e POSTGRES_PASSWORD=secret -p 5432:5432 pgwarp
# Another version: docker build --build-arg PG_MAJOR=17 --build-arg CODENAME=trixie -t pgwarp:17 .
ARG PG_MAJOR=15
ARG CODENAME=bookworm

FROM postgres:${PG_MAJOR}-${CODENAME} AS build
WORKDIR /build/pgwarp
COPY scripts scripts
# The image sets PG_MAJOR and knows PostgreSQL's own package archive, which has postgresql-common-dev.
RUN bash -c '. scripts/lib/common.sh && make_work_dir image && need_packages build' \
    && apt-get install -y --no-install-recommends debhelper dpkg-dev postgresql-common-dev
COPY . .
RUN export DEB_PG_SUPPORTED_VERSIONS="$PG_MAJOR" DEB_BUILD_OPTIONS="nocheck noautodbgsym parallel=$(nproc)" \
    && pg_buildext updatecontrol && dpkg-buildpackage -b -us -uc -d

FROM postgres:${PG_MAJOR}-${CODENAME}
# The packages name the libraries that they need.
RUN --mount=type=bind,from=build,source=/build,target=/build \
    apt-get update && apt-get install -y --no-install-recommends /build/*.deb && rm -rf /var/lib/apt/lists/*
