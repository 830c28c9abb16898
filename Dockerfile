# PostgreSQL 15 of Debian 12 with pgwarp for the CPU:
#   docker build -t pgwarp . && docker run --rm -e POSTGRES_PASSWORD=secret -p 5432:5432 pgwarp
FROM debian:bookworm AS build
WORKDIR /pgwarp
COPY scripts scripts
RUN bash -c '. scripts/lib/common.sh && make_work_dir image && need_packages build'
COPY . .
RUN make ENGINE_CMAKE_FLAGS=-DPGWARP_CUDA=OFF all && make ENGINE_CMAKE_FLAGS=-DPGWARP_CUDA=OFF DESTDIR=/stage install

FROM debian:bookworm
COPY scripts /tmp/scripts
RUN bash -c '. /tmp/scripts/lib/common.sh && make_work_dir image && need_packages server image' && rm -rf /tmp/* /var/lib/apt/lists/*
COPY --from=build /stage /
COPY scripts/lib/image_start /usr/local/bin/
RUN install -d -o postgres -m 700 /var/lib/postgresql/data
USER postgres
VOLUME /var/lib/postgresql/data
EXPOSE 5432
CMD ["image_start"]
