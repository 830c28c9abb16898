// The device's copy of a pqtree index, loaded from the stored arrays (src/methods/pqtree/pqtree.h) and laid out for
// searches: rows in the order of slots.
//
// Codes are gathered on the device and laid out when the next array comes. Halves are scattered to positions as they
// arrive; full vectors stay in row order. Where the device has no room for vectors they lie in page-locked host memory
// and are read over the bus for the rows that are ranked; values are the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "device/context.h"
#include "methods/method.h"
#include "methods/once.h"
#include "methods/pqtree/build_arrays.h"
#include "pqtree/device_tree.h"
#include "rows/remote_rows.h"

namespace pgwarp::cuda::pqtree
{

class Mirror
{
public:
    // Takes the memory of the large arrays, and the codes where they are given on the device. Throws std::bad_alloc
    // where they do not fit, BadRequest for arrays that do not match the options.
    Mirror(Context& context, const IndexShape& shape, const ParameterList& options, std::span<const ArrayShape> arrays,
           DeviceArray<std::uint8_t> codes = {});
    // Given codes are freed in the order of another stream, so work on them must have ended.
    ~Mirror();
    Mirror(const Mirror&) = delete;
    Mirror& operator=(const Mirror&) = delete;

    // Takes pieces of the arrays as Searcher::write does. Thread-safe within an array.
    void write(const std::string& array, std::uint64_t offset, std::span<const std::byte> bytes);
    void finish_load();

    // Valid after finish_load().
    const MirrorView& view() const { return view_; }
    Context& context() const { return *context_; }
    Metric metric() const { return metric_; }
    std::size_t rows() const { return index_.rows; }
    std::size_t dimensions() const { return index_.dimensions; }
    const TreeOptions& options() const { return index_.options; }
    float half_error() const { return index_.half.scale[1]; }
    bool is_split() const { return is_split_; }
    std::uint64_t device_bytes() const;
    std::uint64_t host_bytes() const { return remote_.bytes(); }
    // Bytes of a row that are read over the bus when its value is computed; 0: none.
    std::size_t remote_row_bytes() const { return remote_.empty() ? 0 : remote_.row_bytes(); }

private:
    std::size_t vector_bytes() const;
    void take_memory();
    void arrange();
    void receive(const std::string& array, std::uint64_t offset, std::span<const std::byte> bytes);
    void point_view();

    Context* context_;
    Metric metric_;
    TreeArrays index_;
    bool is_split_ = false;
    BinSlots slots_;
    Once arranged_;
    // All arrays belong to the stream of `owner_`, which is destroyed last.
    Context::Lease owner_;
    DeviceArray<std::uint8_t> stored_codes_;  // while loading
    DeviceArray<std::uint32_t> position_of_;  // while loading
    DeviceTree tree_;
    DeviceArray<std::uint32_t> row_at_;
    DeviceArray<std::uint32_t> begin_;
    DeviceArray<std::uint64_t> bin_at_;  // where bins are hashed
    DeviceArray<uint4> codes_;
    DeviceArray<std::uint16_t> biases_;
    DeviceArray<__half> halves_;
    DeviceArray<float> half_mean_;
    DeviceArray<float> vectors_;
    rows::RemoteRows remote_;
    MirrorView view_;
};

}  // namespace pgwarp::cuda::pqtree
