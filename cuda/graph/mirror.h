// The device's copy of a graph index, made from its stored arrays (methods/graph/graph.h). Rows stay in row order, as
// bytes or halves padded to whole pieces of 16 bytes, as floats, or as bits (TraversalForm). Halves or bytes of the
// seeds are copied into arrays of their own. The arrays on the device depend on its free memory: form.h.
#pragma once

#include <cuda_fp16.h>
#include <vector_types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "device/context.h"
#include "device/wait.h"
#include "graph/form.h"
#include "graph/launch_config.h"
#include "graph/view.h"
#include "methods/graph/edge_changes.h"
#include "methods/method.h"
#include "rows/remote_rows.h"

namespace pgwarp::cuda::graph
{

class Mirror
{
public:
    // Takes the best form that the context has room for, and the memory of its large arrays. Throws std::bad_alloc
    // where no form fits, BadRequest for arrays that do not match the options.
    Mirror(Context& context, const IndexShape& shape, const ParameterList& options, std::span<const ArrayShape> arrays);
    ~Mirror();
    Mirror(const Mirror&) = delete;
    Mirror& operator=(const Mirror&) = delete;

    // Takes pieces of the arrays as Searcher::write does. Thread-safe within an array.
    void write(const std::string& array, std::uint64_t offset, std::span<const std::byte> bytes);
    // Throws BadRequest for neighbours or seeds that are not rows, and for invalid scales.
    void finish_load();

    // Valid after finish_load().
    const GraphView& view() const { return view_; }
    DeviceLimits limits() const;

    Context& context() const { return *context_; }
    Metric metric() const { return metric_; }
    std::size_t dimensions() const { return dimensions_; }
    std::size_t rows() const { return rows_; }
    const GraphOptions& options() const { return options_; }
    float half_error() const { return half_scale_[1]; }
    Form form() const { return form_; }
    bool is_split() const { return form_ != Form::whole; }
    std::uint64_t device_bytes() const;
    std::uint64_t host_bytes() const { return remote_.bytes(); }
    // Bytes of a row that are read over the bus when its value is computed; 0: none.
    std::size_t remote_row_bytes() const { return remote_.row_bytes(); }

private:
    bool keeps_bits() const { return options_.vectors == GraphVectors::bits; }
    bool keeps_full() const { return options_.vectors == GraphVectors::full; }
    bool keeps_half() const { return options_.vectors == GraphVectors::half; }
    bool squared() const { return metric_ == Metric::l2 || metric_ == Metric::l1; }
    void choose_form();
    std::uint64_t workspace_bytes() const;
    void take_memory();
    void copy_in(void* to, std::size_t size, std::uint64_t offset, std::span<const std::byte> bytes);
    void write_halves(std::uint64_t offset, std::span<const std::byte> bytes);
    template <class T>
    void upload(DeviceArray<T>& to, std::span<const T> from, const char* name);
    void change_neighbours();
    void check_rows();
    void load_bits();
    void point_view();

    // mirror_rows.cpp: the form in which rows are compared.
    void take_halves();
    const float* full_rows() const;
    std::size_t full_stride() const { return remote_.empty() ? dimensions_ : remote_.stride(); }
    std::size_t rows_of_piece() const;
    void copy_rows(const std::uint32_t* numbers, std::size_t first, std::size_t count, float* out);
    std::vector<float> fetch_rows(std::span<const std::uint32_t> numbers);
    std::vector<float> sampled_mean();
    bool has_room_for_bytes() const;
    bool bytes_serve(std::span<const float> mean);
    TraversalForm choose_row_form(std::vector<float>& byte_mean);
    void load_vectors();
    void choose_scale(float largest);
    void make_halves();
    void gather_seeds();
    void make_seeds();
    void make_bytes(std::span<const float> mean);

    Context* context_;
    Metric metric_;
    std::size_t dimensions_;
    std::size_t rows_;
    std::size_t seeds_;
    GraphOptions options_;
    Form form_ = Form::whole;
    bool has_clusters_ = false;

    // On the host while loading.
    std::vector<std::uint32_t> seed_rows_;
    std::vector<EdgeChange> changes_;
    std::vector<float> half_mean_;
    float half_scale_[2] = {1, 0};
    std::vector<float> projection_;

    // All arrays belong to the stream of `owner_`, which is destroyed last.
    Context::Lease owner_;
    DeviceArray<std::uint32_t> row_numbers_;  // [positions]: row numbers, no_row in padding
    DeviceArray<std::uint32_t> neighbours_;
    DeviceArray<std::uint32_t> device_seeds_;
    DeviceArray<std::byte> reserved_;  // while loading: holds room for the compared form of the rows
    DeviceArray<__half> halves_;
    DeviceArray<float> terms_;
    DeviceArray<std::int8_t> codes_;
    DeviceArray<float2> code_terms_;
    DeviceArray<std::int8_t> seed_codes_;
    DeviceArray<float2> seed_code_terms_;
    DeviceArray<float> byte_mean_;
    DeviceArray<float> device_mean_;
    DeviceArray<__half> seed_halves_;
    DeviceArray<float> seed_terms_;
    DeviceArray<float> vectors_;
    DeviceArray<std::uint32_t> bits_;
    DeviceArray<float> device_projection_;
    rows::RemoteRows remote_;
    GraphView view_;
};

// The caller keeps `from` until it has waited for the stream.
template <class T>
void Mirror::upload(DeviceArray<T>& to, std::span<const T> from, const char* name)
{
    to = DeviceArray<T>(context_->pool(), from.size(), name, owner_);
    if (from.empty()) return;
    send(to.data(), from.data(), from.size_bytes(), owner_, name);
}

}  // namespace pgwarp::cuda::graph
