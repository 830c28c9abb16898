// Computes the crc32c of a run of bytes.
#pragma once

#include "postgres/postgres_headers.h"

extern "C" {
#include "port/pg_crc32c.h"
}

namespace pgwarp
{

inline uint32 bytes_crc(const void* bytes, uint64 length)
{
    pg_crc32c crc;
    INIT_CRC32C(crc);
    COMP_CRC32C(crc, bytes, length);
    FIN_CRC32C(crc);
    return crc;
}

}  // namespace pgwarp
