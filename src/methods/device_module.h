/* The interface of the CUDA module (pgwarp-cuda.so). pgwarp-engine opens the module with dlopen, so that one package
 * runs with and without a driver. The interface is plain C, but both sides must be of one build, so that the classes
 * behind MethodFactory may be C++. */
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
    uint32_t builds;  /* running on it */
    uint64_t used;    /* bytes that the module has allocated, workspaces included */
    uint64_t allowed; /* at most */
};

struct PgwarpDeviceModule {
    uint32_t abi; /* PGWARP_DEVICE_ABI */
    uint32_t reserved;
    const char* build; /* must equal the engine's own */

    /* Takes the devices named ("0,1"; empty = all) and at most `memory` bytes of each (0 = no limit). Returns 0 on
     * success, else writes the reason to `message` and takes nothing. */
    int (*open)(const char* gpus, uint64_t memory, char* message, size_t message_bytes);
    void (*close)(void);

    /* Writes "cuda (NVIDIA H200)" or the like, for status and the log. */
    void (*describe)(char* text, size_t text_bytes);

    /* Sets a function that may free memory on device `gpu`. The thread that allocates calls relief(what, gpu, bytes)
     * before an allocation of `bytes` fails. */
    void (*set_relief)(void (*relief)(void* what, int32_t gpu, uint64_t bytes), void* what);

    /* Fills at most `most` entries, one a device; returns the number of devices. */
    uint32_t (*memory)(struct PgwarpDeviceMemory* devices, uint32_t most);
    /* Page-locked host memory of the module. */
    uint64_t (*pinned)(void);

    /* patience_left() (methods/device_wait.h) of the module, in nanoseconds; INT64_MAX: no thread waits. */
    int64_t (*patience_left)(void);
    /* For tests: launches work of this many seconds on the first device, and waits for it as a search does. NULL where
     * the module was built without fault points. */
    void (*hang)(uint32_t seconds);

#ifdef __cplusplus
    /* The method's builder and searcher on the device; NULL where the CPU serves the method. */
    const pgwarp::MethodFactory* (*find_method)(uint8_t method);
#else
    const void* (*find_method)(uint8_t method);
#endif
};

#ifdef __cplusplus
extern "C" {
#endif
/* The function that the module exports; it returns NULL for another ABI. */
typedef const struct PgwarpDeviceModule* (*PgwarpDeviceEntry)(uint32_t abi);
#ifdef __cplusplus
}
#endif
