// The device's copy of an ivfadc index, loaded from the stored arrays (src/methods/ivfadc/ivfadc.h) and laid out for
// scans.
//
// Halves and codes are scattered to list-major order as they arrive. Where only full vectors are kept (refine = full)
// they stay in row order, and halves for the scan are made from them. Where bytes are kept (codes = int8) they are
// scanned, and halves or vectors only rank. Small arrays (centroids, codebooks, list_of_row) are gathered on the host.
// The arrays on the device depend on its free memory: form.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "device/context.h"
#include "ivfadc/form.h"
#include "ivfadc/layout.h"
#include "ivfadc/view.h"
#include "methods/ivfadc/ivfadc.h"
#include "methods/method.h"
#include "methods/once.h"
#include "numeric/rotation.h"
#include "rows/remote_rows.h"

namespace pgwarp::cuda::ivfadc
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

    // Takes pieces of the arrays as Searcher::write does; list_of_row and centroids come first. Thread-safe within an
    // array.
    void write(const std::string& array, std::uint64_t offset, std::span<const std::byte> bytes);
    void finish_load(ThreadPool& pool);
    void finish_load()
    {
        ThreadPool one_thread(1);
        finish_load(one_thread);
    }

    // Valid after finish_load().
    const MirrorView& view() const { return view_; }
    const ListLayout& layout() const { return layout_; }
    Context& context() const { return *context_; }

    Metric metric() const { return metric_; }
    std::size_t dimensions() const { return dimensions_; }
    std::size_t rows() const { return rows_; }
    std::size_t lists() const { return lists_; }
    const IvfOptions& options() const { return options_; }
    float half_error() const { return half_scale_[1]; }
    std::uint64_t device_bytes() const;
    std::uint64_t host_bytes() const;
    Form form() const { return form_; }
    bool is_split() const { return form_ != Form::whole; }
    // Decodes the vector of a row in host memory into out [dimensions].
    void read_remote(std::size_t row, std::span<float> out) const;
    // Bytes of a row that are read over the bus when its value is computed; 0: none.
    std::size_t remote_row_bytes() const { return view_.remote.stride * (remote_halves() ? 2 : 4); }

private:
    bool remote_halves() const { return form_ == Form::codes && !options_.keeps_full(); }
    bool remote_vectors() const { return form_ != Form::whole && options_.keeps_full(); }
    // Whether bytes are made from half or full vectors on the host, as the index has no codes.
    bool makes_bytes() const { return scans_bytes_ && !options_.byte_codes; }
    void make_bytes(ThreadPool& pool);
    std::uint64_t workspace_bytes() const;
    void choose_form();
    void take_memory();
    template <class Use>
    void for_pieces(std::size_t count, Use use) const;
    template <class T>
    void upload(DeviceArray<T>& to, std::span<const T> from, const char* name, cudaStream_t stream);
    void arrange();
    void scatter(const std::string& array, std::uint64_t offset, std::span<const std::byte> bytes);
    void load_centres(cudaStream_t stream);
    void load_codebooks(cudaStream_t stream);
    void load_bytes(cudaStream_t stream);
    void make_halves(cudaStream_t stream);
    void point_view();

    Context* context_;
    Metric metric_;
    std::size_t dimensions_;
    std::size_t rows_;
    std::size_t lists_;
    IvfOptions options_;
    Form form_ = Form::whole;
    bool scans_codes_ = false;
    bool scans_bytes_ = false;
    std::size_t positions_ = 0;  // upper bound

    // On the host while loading.
    std::vector<float> centroids_;
    Rotation rotation_;
    std::vector<float> codebooks_;
    std::vector<float> half_mean_;
    float half_scale_[2] = {1, 0};
    std::vector<std::uint32_t> list_of_row_;
    std::vector<float> code_scale_;
    Once arranged_;

    ListLayout layout_;  // finish_load() drops position_of
    float centre_scale_ = 1;
    float codebook_scale_ = 1;
    // All arrays belong to the stream of `owner_`, which is destroyed last.
    Context::Lease owner_;
    DeviceArray<std::uint32_t> position_of_;  // while loading
    DeviceArray<std::uint32_t> list_begin_;
    DeviceArray<std::uint32_t> list_length_;
    DeviceArray<std::uint32_t> row_at_;
    DeviceArray<float> row_terms_;
    DeviceArray<float> device_centroids_;
    DeviceArray<float> centre_mean_;
    DeviceArray<__half> centre_halves_;
    DeviceArray<float> centre_terms_;
    DeviceArray<__half> halves_;
    DeviceArray<float> device_half_mean_;
    DeviceArray<std::uint8_t> codes_;
    DeviceArray<std::uint8_t> bytes_;
    DeviceArray<float> byte_scales_;
    DeviceArray<float> device_codebooks_;
    DeviceArray<__half> half_codebooks_;
    DeviceArray<std::uint16_t> part_of_;
    DeviceArray<float> device_rotation_;
    DeviceArray<std::uint8_t> device_signs_;
    DeviceArray<float> vectors_;
    RemoteRows remote_;
    MirrorView view_;
};

}  // namespace pgwarp::cuda::ivfadc
