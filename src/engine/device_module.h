/* The door between pgwarp-engine and the CUDA module (pgwarp-cuda.so), which the engine opens with dlopen so that one
 * package runs with and without a driver. Plain C at the door; behind it both sides are of one build, which is checked,
 * so that MethodDescriptor and what it makes may be C++. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define PGWARP_DEVICE_ABI 1U
#define PGWARP_DEVICE_ENTRY "pgwarp_device_module"

#ifdef __cplusplus
namespace pgwarp
{
struct MethodDescriptor;
}
#endif

struct PgwarpDeviceModule {
    uint32_t abi; /* PGWARP_DEVICE_ABI */
    uint32_t reserved;
    const char* build; /* must equal the engine's own */

    /* Takes the devices named ("0,1"; empty = all) and at most `memory` bytes of each (0 = no limit). 0 on success;
     * else `message` says why not, and nothing is kept. */
    int (*open)(const char* gpus, uint64_t memory, char* message, size_t message_bytes);
    void (*close)(void);

    /* "cuda (NVIDIA H200)": for status and the log. */
    void (*describe)(char* text, size_t text_bytes);

#ifdef __cplusplus
    /* The method's builder and searcher on the device; NULL where the CPU is to serve the method. */
    const pgwarp::MethodDescriptor* (*find_method)(uint8_t method);
#else
    const void* (*find_method)(uint8_t method);
#endif
};

#ifdef __cplusplus
extern "C" {
#endif
/* What the module exports: NULL when it doesn't speak this ABI. */
typedef const struct PgwarpDeviceModule* (*PgwarpDeviceEntry)(uint32_t abi);
#ifdef __cplusplus
}
#endif
