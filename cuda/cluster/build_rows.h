// The rows of a build in device memory, and the steps of builds that need nothing else: half vectors and calibration's
// truth.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "cluster/staging.h"
#include "device/context.h"
#include "device/event.h"
#include "device/wait.h"
#include "methods/method.h"
#include "methods/rows/half_rows.h"

namespace pgwarp::cuda
{

class BuildRows
{
public:
    // name: the purpose of the build's device memory, a static string.
    BuildRows(Context& context, const char* name);
    BuildRows(const BuildRows&) = delete;
    BuildRows& operator=(const BuildRows&) = delete;

    // Takes memory for the rows, which stay where they are until they are uploaded.
    void begin(RowBuffer& rows, std::size_t dimensions);
    // Returns the rows with these numbers on the device, where all rows are uploaded.
    DeviceArray<float> sample(const std::vector<std::uint32_t>& numbers) const;
    // The same before that: the rows are gathered on the host, which takes longer.
    DeviceArray<float> sample_of_host(const std::vector<std::uint32_t>& numbers, ThreadPool& pool,
                                      const CancelToken* cancel);
    // Copies the rows to the device in pieces, in order. use(first, count) enqueues work on a piece in stream(); the
    // next one is copied meanwhile.
    void upload(const char* phase, const BuildProgress& progress, ThreadPool& pool,
                const std::function<void(std::size_t, std::size_t)>& use);
    static constexpr std::size_t piece_rows = std::size_t{1} << 17;
    const float* data() const { return rows_.data(); }
    // The rows from `number` on.
    const float* row(std::size_t number) const { return rows_.data() + number * dimensions_; }
    std::size_t count() const { return count_; }

    Context& context() const { return context_; }
    cudaStream_t stream() const { return lease_; }
    void wait() const { lease_.stream().synchronize(); }
    template <class T>
    DeviceArray<T> array(std::size_t count) const
    {
        return DeviceArray<T>(context_.pool(), count, name_, stream());
    }
    // For small arrays.
    template <class T>
    DeviceArray<T> copy_of(std::span<const T> values) const
    {
        DeviceArray<T> copy = array<T>(values.size());
        if (!values.empty()) send(copy.data(), values.data(), copy.bytes(), stream(), "copying to the device");
        return copy;
    }
    // Copies to the host and waits.
    template <class T>
    void read(const T* device, std::span<T> out) const
    {
        if (out.empty()) return wait();
        read_back(out.data(), device, out.size_bytes(), stream(), "copying from the device");
    }
    // For large arrays.
    template <class T>
    void download(const DeviceArray<T>& from, T* to, ThreadPool& pool, const CancelToken* cancel)
    {
        follow(copies_, stream());
        staging_.download(from.data(), from.bytes(), to, pool, cancel);
    }

    // Chooses the codec of half vectors and makes them, for keep_halves().
    void train_half(const IndexShape& shape, HalfRows& half);
    // As calibration_truth() (methods/recall/truth.h).
    std::vector<std::vector<std::uint32_t>> truth(Metric metric, const std::vector<std::uint32_t>& sample,
                                                  ThreadPool& pool, const CancelToken* cancel) const;
    // Overwrites the memory of the rows on the host with the half vectors, and returns them.
    std::span<const std::uint16_t> keep_halves(ThreadPool& pool);

private:
    // Work that is enqueued in `later` from now on waits for that in `sooner`.
    void follow(cudaStream_t later, cudaStream_t sooner);

    Context& context_;
    const char* name_;
    Context::Build build_;
    Context::Lease lease_;
    Context::Lease copies_;
    Event ordered_;
    RowBuffer* host_ = nullptr;
    std::size_t dimensions_ = 0;
    std::size_t count_ = 0;
    DeviceArray<float> rows_;
    DeviceArray<std::uint16_t> halves_;
    Staging staging_;  // copies end before the memory above is freed
};

}  // namespace pgwarp::cuda
