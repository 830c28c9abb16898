/* The door between pgwarp-engine and the CUDA module (pgwarp-cuda.so), which the engine opens with dlopen so that one
 * package runs with and without a driver. Plain C at the door; behind it both sides are of one build, which is checked,
 * so that MethodFactory and what it makes may be C++. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define PGWARP_DEVICE_ABI 3U
#define PGWARP_DEVICE_ENTRY "pgwarp_device_module"

#ifdef __cplusplus
namespace pgwarp
{
struct MethodFactory;
}
#endif

/* The memory of one device. */
struct PgwarpDeviceMemory {
    int32_t gpu;      /* its number */
    uint32_t builds;  /* under way on it */
    uint64_t used;    /* bytes that the module has allocated, workspaces included */
    uint64_t allowed; /* at most */
};

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

    /* Calls relief(what, gpu, bytes) before an allocation fails for want of so many bytes. It may release what it holds
     * on that device, from the thread that allocates. */
    void (*set_relief)(void (*relief)(void* what, int32_t gpu, uint64_t bytes), void* what);

    /* Fills at most `most` entries, one a device; returns how many devices there are. */
    uint32_t (*memory)(struct PgwarpDeviceMemory* devices, uint32_t most);
    /* Page-locked host memory of the module. */
    uint64_t (*pinned)(void);

    /* What the module's own patience_left() of methods/device_wait.h says, in nanoseconds; INT64_MAX: nobody waits. */
    int64_t (*patience_left)(void);
    /* For tests: launches work on the first device that ends after so many seconds, and waits for it as a search does.
     * NULL where the module was built without fault points. */
    void (*hang)(uint32_t seconds);

#ifdef __cplusplus
    /* The method's builder and searcher on the device; NULL where the CPU is to serve the method. */
    const pgwarp::MethodFactory* (*find_method)(uint8_t method);
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
