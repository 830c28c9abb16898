// A graph index on the device: its stored arrays (index/graph/graph.h) as searches want them. Rows stay in row order,
// as halves padded to whole pieces of 16 bytes, or as bits; the seeds' forms lie together. How much of it is on the
// device depends on the room there: form.h.
#pragma once

#include <cuda_fp16.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "device/context.h"
#include "graph/form.h"
#include "graph/search_shape.h"
#include "graph/view.h"
#include "index/graph/edge_changes.h"
#include "index/index.h"

namespace pgwarp::cuda::graph
{

class Mirror
{
public:
    // Takes the best form that the context has room for, and the memory of its large arrays. Throws std::bad_alloc when
    // it has room for none, BadRequest for arrays that are not those of the options.
    Mirror(Context& context, const IndexShape& shape, const ParameterList& options, std::span<const ArrayShape> arrays);
    ~Mirror();
    Mirror(const Mirror&) = delete;
    Mirror& operator=(const Mirror&) = delete;

    // As Searcher::write: pieces of the arrays in their order, thread-safe within an array.
    void write(const std::string& array, std::uint64_t offset, std::span<const std::byte> bytes);
    // Throws BadRequest for neighbours or seeds that are no rows, and for impossible scales.
    void finish_load();

    // Valid after finish_load().
    const GraphView& view() const { return view_; }
    SearchGround ground() const;

    Context& context() const { return *context_; }
    Metric metric() const { return metric_; }
    std::size_t dimensions() const { return dimensions_; }
    std::size_t rows() const { return rows_; }
    const GraphOptions& options() const { return options_; }
    float half_error() const { return half_scale_[1]; }
    Form form() const { return form_; }
    std::uint64_t device_bytes() const;
    std::uint64_t host_bytes() const { return remote_.size(); }
    // Bytes of a row that are read over the bus when its value is computed; 0: none are.
    std::size_t remote_row_bytes() const { return remote_stride_ * sizeof(float); }

private:
    bool keeps_bits() const { return options_.vectors == GraphVectors::bits; }
    bool keeps_full() const { return options_.vectors == GraphVectors::full; }
    bool keeps_half() const { return options_.vectors == GraphVectors::half; }
    bool squared() const { return metric_ == Metric::l2 || metric_ == Metric::l1; }
    void require_arrays(std::span<const ArrayShape> arrays) const;
    void choose_form();
    void take_memory();
    void copy_in(void* to, std::size_t size, std::uint64_t offset, std::span<const std::byte> bytes);
    void write_halves(std::uint64_t offset, std::span<const std::byte> bytes);
    void write_remote(std::uint64_t offset, std::span<const std::byte> bytes);
    template <class T>
    void upload(DeviceArray<T>& to, std::span<const T> from, const char* name);
    void change_neighbours();
    void check_rows();
    std::vector<float> middle();
    void make_halves();
    void load_halves();
    void load_bits();
    void point_view();

    Context* context_;
    Metric metric_;
    std::size_t dimensions_;
    std::size_t rows_;
    std::size_t seeds_;
    GraphOptions options_;
    Form form_ = Form::whole;

    // On the host while loading.
    std::vector<std::uint32_t> seed_rows_;
    std::vector<EdgeChange> changes_;
    std::vector<float> half_mean_;
    float half_scale_[2] = {1, 0};
    std::vector<float> projection_;

    // All belong to the stream of `owner_`, which goes last.
    Context::Lease owner_;
    DeviceArray<std::uint32_t> row_numbers_;  // [whole groups]
    DeviceArray<std::uint32_t> neighbours_;
    DeviceArray<std::uint32_t> device_seeds_;
    DeviceArray<__half> halves_;
    DeviceArray<float> terms_;
    DeviceArray<float> device_mean_;
    DeviceArray<__half> seed_halves_;
    DeviceArray<float> seed_terms_;
    DeviceArray<float> vectors_;
    DeviceArray<std::uint32_t> bits_;
    DeviceArray<float> device_projection_;
    HostMemory remote_;  // rows of whole pieces of 16 bytes
    std::size_t remote_stride_ = 0;
    GraphView view_;
};

}  // namespace pgwarp::cuda::graph
