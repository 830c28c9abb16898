// Marks functions that host and device code share.
#pragma once

#ifdef __CUDACC__
#define PGWARP_HOST_DEVICE __host__ __device__
#else
#define PGWARP_HOST_DEVICE
#endif
