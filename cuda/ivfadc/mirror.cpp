#include "ivfadc/mirror.h"

#include <algorithm>
#include <cmath>

#include "cluster/hadamard.h"
#include "device/error.h"
#include "device/wait.h"
#include "ivfadc/mirror_kernels.h"
#include "methods/arrays.h"
#include "methods/ivfadc/build_arrays.h"
#include "methods/rows/byte_lists.h"
#include "rows/forms.h"

namespace pgwarp::cuda::ivfadc
{

namespace
{

std::uint64_t rows_of(std::span<const ArrayShape> arrays, const char* name, std::uint64_t otherwise)
{
    const ArrayShape* shape = find_array(arrays, name);
    return shape != nullptr ? shape->rows : otherwise;
}

constexpr std::uint64_t most_workspaces = std::uint64_t{1} << 30;
constexpr std::size_t bytes_of_launch = std::size_t{64} << 20;

std::vector<float> mean_of(std::span<const float> rows, std::size_t dimensions)
{
    std::vector<double> sum(dimensions, 0.0);
    for (std::size_t i = 0; i < rows.size(); ++i) sum[i % dimensions] += rows[i];
    const double count = std::max<double>(1, static_cast<double>(rows.size() / dimensions));
    std::vector<float> mean(dimensions);
    for (std::size_t d = 0; d < dimensions; ++d) mean[d] = static_cast<float>(sum[d] / count);
    return mean;
}

// The median of each dimension over a sample: unlike the mean, it stays among the rows where a few of them are far
// away.
std::vector<float> middle_of(std::span<const float> rows, std::size_t dimensions)
{
    constexpr std::size_t most = 1024;
    const std::size_t count = rows.size() / dimensions;
    const std::size_t taken = std::min(count, most);
    std::vector<float> values(taken);
    std::vector<float> middle(dimensions, 0.0F);
    for (std::size_t d = 0; d < dimensions && taken > 0; ++d) {
        for (std::size_t i = 0; i < taken; ++i) values[i] = rows[i * count / taken * dimensions + d];
        const auto at = values.begin() + static_cast<std::ptrdiff_t>(taken / 2);
        std::nth_element(values.begin(), at, values.end());
        middle[d] = *at;
    }
    return middle;
}

}  // namespace

Mirror::Mirror(Context& context, const IndexShape& shape, const ParameterList& options,
               std::span<const ArrayShape> arrays)
    : context_(&context),
      metric_(static_cast<Metric>(shape.metric)),
      dimensions_(shape.dimensions),
      rows_(rows_of(arrays, array_list_of_row, 0)),
      lists_(rows_of(arrays, array_centroids, 1)),
      options_(IvfOptions::resolve(options, rows_, shape.dimensions)),
      centroids_(lists_ * dimensions_),
      half_mean_(dimensions_),
      list_of_row_(rows_),
      owner_(context.lease(Priority::build))
{
    if (rows_ > 0) require_ivfadc_arrays(arrays, options_, rows_, lists_, dimensions_);
    choose_form();
    take_memory();
    if (scans_bytes_) code_scale_.resize(rows_);
    if (scans_codes_) {
        codebooks_.resize(256 * dimensions_);
        if (options_.opq && rows_ > 0) rotation_ = Rotation(dimensions_);
    }
}

// Searches wait for their work, so none is under way here.
Mirror::~Mirror() = default;

// The memory left for the workspaces of searches, without which a resident index is useless, and for the load itself.
std::uint64_t Mirror::workspace_bytes() const
{
    const MemoryPool& pool = context_->pool();
    return std::min((pool.budget() != 0 ? pool.budget() : pool.room()) / 8, most_workspaces);
}

void Mirror::choose_form()
{
    MemoryPool& pool = context_->pool();
    const std::uint64_t workspaces = workspace_bytes();
    const MirrorSize size{rows_, lists_, dimensions_};
    for (const Form form : forms_of(options_)) {
        form_ = form;
        scans_codes_ = cuda::ivfadc::scans_codes(options_, form);
        scans_bytes_ = cuda::ivfadc::scans_bytes(options_, form);
        if (pool.has_room(device_bytes_of(options_, size, form) + workspaces)) return;
    }
    throw std::bad_alloc();
}

void Mirror::take_memory()
{
    positions_ = most_positions(rows_, lists_);
    if (positions_ >= no_row) throw BadRequest("too many rows for one device");
    MemoryPool& pool = context_->pool();
    if (scans_codes_) {
        const std::size_t code_groups = (options_.subquantizers + group_codes - 1) / group_codes;
        codes_ = DeviceArray<std::uint8_t>(pool, positions_ * code_groups * group_codes, "ivfadc codes", owner_);
        if (codes_.size() > 0) check(cudaMemsetAsync(codes_.data(), 0, codes_.bytes(), owner_), "clearing codes");
    }
    if (scans_bytes_) {
        const std::uint32_t stride = byte_stride(static_cast<std::uint32_t>(dimensions_));
        bytes_ = DeviceArray<std::uint8_t>(pool, positions_ * stride, "ivfadc bytes", owner_);
        if (bytes_.size() > 0) check(cudaMemsetAsync(bytes_.data(), 128, bytes_.bytes(), owner_), "clearing bytes");
    }
    if (keeps_halves(options_, form_)) {
        const std::size_t stride = half_stride(static_cast<std::uint32_t>(dimensions_));
        halves_ = DeviceArray<__half>(pool, positions_ * stride, "ivfadc half vectors", owner_);
        if (halves_.size() > 0) {
            check(cudaMemsetAsync(halves_.data(), 0, halves_.bytes(), owner_), "clearing half vectors");
        }
    }
    if (remote_halves() || remote_vectors()) {
        const std::size_t element = remote_halves() ? sizeof(__half) : sizeof(float);
        remote_ = RemoteRows(rows_, dimensions_, element);
    } else if (options_.keeps_full()) {
        vectors_ = DeviceArray<float>(pool, rows_ * dimensions_, "ivfadc vectors", owner_);
    }
    owner_.stream().synchronize();
}

template <class T>
void Mirror::upload(DeviceArray<T>& to, std::span<const T> from, const char* name, cudaStream_t stream)
{
    to = DeviceArray<T>(context_->pool(), from.size(), name, owner_);
    if (from.empty()) return;
    send(to.data(), from.data(), from.size_bytes(), stream, name);
}

void Mirror::write(const std::string& array, std::uint64_t offset, std::span<const std::byte> bytes)
{
    if (array == array_centroids) return write_piece(std::span<float>(centroids_), offset, bytes);
    if (array == array_list_of_row) return write_piece(std::span<std::uint32_t>(list_of_row_), offset, bytes);
    if (scans_bytes_) {
        if (array == array_code_scale) return write_piece(std::span<float>(code_scale_), offset, bytes);
        if (array == array_codes) return scatter(array, offset, bytes);
    }
    if (scans_codes_) {
        if (array == array_codebooks) return write_piece(std::span<float>(codebooks_), offset, bytes);
        if (array == array_rotation) return write_piece(rotation_.matrix(), offset, bytes);
        if (array == array_rotation_signs) return write_piece(rotation_.signs(), offset, bytes);
        if (array == array_codes) return scatter(array, offset, bytes);
    }
    if (options_.keeps_full()) {
        if (array == array_vectors)
            return remote_vectors() ? remote_.write(offset, bytes) : scatter(array, offset, bytes);
    } else if (options_.keeps_half()) {
        if (array == array_half_mean) return write_piece(std::span<float>(half_mean_), offset, bytes);
        if (array == array_half_scale) return write_piece(std::span<float>(half_scale_), offset, bytes);
        if (array == array_half) return remote_halves() ? remote_.write(offset, bytes) : scatter(array, offset, bytes);
    }
    // This form does not need the other arrays.
}

// The rows of remote_ are padded to whole pieces of 16 bytes.
void Mirror::read_remote(std::size_t row, std::span<float> out) const
{
    if (remote_vectors()) {
        std::copy_n(remote_.row<float>(row), dimensions_, out.begin());
        return;
    }
    const auto* from = remote_.row<__half>(row);
    for (std::size_t d = 0; d < dimensions_; ++d) out[d] = __half2float(from[d]) / half_scale_[0] + half_mean_[d];
}

// Lays out the lists. Called after all of list_of_row is written.
void Mirror::arrange()
{
    arranged_.run([&] {
        const cudaStream_t stream = owner_;
        layout_ = ListLayout::arrange(list_of_row_, lists_);
        upload<std::uint32_t>(position_of_, layout_.position_of, "ivfadc positions", stream);
        upload<std::uint32_t>(list_begin_, layout_.begin, "ivfadc lists", stream);
        upload<std::uint32_t>(list_length_, layout_.length, "ivfadc lists", stream);
        upload<std::uint32_t>(row_at_, layout_.row_at, "ivfadc rows", stream);
        owner_.stream().synchronize();
        // Where memory was short, the next writer lays the lists out again, so the lists of rows stay until now.
        if (!makes_bytes()) list_of_row_ = {};
    });
}

void Mirror::scatter(const std::string& array, std::uint64_t offset, std::span<const std::byte> bytes)
{
    const Context::Lease lease = context_->lease(Priority::build);
    arrange();
    if (bytes.empty()) return;
    const std::size_t row_bytes = array == array_codes  ? options_.code_width(dimensions_)
                                  : array == array_half ? dimensions_ * sizeof(__half)
                                                        : dimensions_ * sizeof(float);
    if (offset > rows_ * row_bytes || bytes.size() > rows_ * row_bytes - offset) {
        throw BadRequest("past the end of an array");
    }
    if (array == array_vectors) {
        send(reinterpret_cast<std::byte*>(vectors_.data()) + offset, bytes.data(), bytes.size(), lease,
             "copying vectors");
        return lease.stream().synchronize();
    }
    DeviceArray<std::byte> piece(context_->pool(), bytes.size(), "ivfadc loading", lease);
    send(piece.data(), bytes.data(), bytes.size(), lease, "copying rows");
    if (array == array_codes && scans_bytes_) {
        scatter_bytes(piece.data(), offset, bytes.size(), static_cast<std::uint32_t>(dimensions_), position_of_.data(),
                      bytes_.data(), lease);
    } else if (array == array_codes) {
        scatter_codes(piece.data(), offset, bytes.size(), static_cast<std::uint32_t>(options_.subquantizers),
                      position_of_.data(), codes_.data(), lease);
    } else {
        scatter_halves(piece.data(), offset, bytes.size(), static_cast<std::uint32_t>(dimensions_), position_of_.data(),
                       halves_.data(), lease);
    }
    lease.stream().synchronize();
}

// Makes the centroids as halves, around their median for l2, for the coarse scan.
void Mirror::load_centres(cudaStream_t stream)
{
    const std::size_t count = whole_groups(static_cast<std::uint32_t>(lists_));
    const auto dimensions = static_cast<std::uint32_t>(dimensions_);
    std::vector<float> mean(dimensions_, 0.0F);
    if (metric_ == Metric::l2) mean = middle_of(centroids_, dimensions_);
    float largest = 0;
    for (std::size_t i = 0; i < centroids_.size(); ++i) {
        largest = std::max(largest, std::fabs(centroids_[i] - mean[i % dimensions_]));
    }
    centre_scale_ = power_of_two(largest, 10);
    upload<float>(device_centroids_, centroids_, "ivfadc centroids", stream);
    upload<float>(centre_mean_, mean, "ivfadc centroids", stream);
    MemoryPool& pool = context_->pool();
    centre_halves_ = DeviceArray<__half>(pool, count * half_stride(dimensions), "ivfadc centroids", owner_);
    centre_terms_ = DeviceArray<float>(pool, count, "ivfadc centroids", owner_);
    check(cudaMemsetAsync(centre_halves_.data(), 0, centre_halves_.bytes(), stream), "clearing centroids");
    encode_halves(device_centroids_.data(), nullptr, lists_, centre_mean_.data(), centre_scale_, dimensions,
                  dimensions_, centre_halves_.data(), stream);
    half_terms(centre_halves_.data(), nullptr, lists_, count, dimensions, metric_ == Metric::l2, centre_terms_.data(),
               stream);
    wait_for(stream, "loading centroids");
}

void Mirror::load_codebooks(cudaStream_t stream)
{
    const auto subquantizers = static_cast<std::uint32_t>(options_.subquantizers);
    const std::size_t width = dimensions_ / subquantizers;
    const std::size_t wider = dimensions_ % subquantizers;
    std::vector<std::uint16_t> part_of(dimensions_);
    for (std::size_t part = 0, d = 0; part < subquantizers; ++part) {
        for (std::size_t i = 0; i < width + (part < wider ? 1 : 0); ++i) {
            part_of[d++] = static_cast<std::uint16_t>(part);
        }
    }
    float largest = 0;
    for (const float value : codebooks_) largest = std::max(largest, std::fabs(value));
    codebook_scale_ = power_of_two(largest, 10);
    upload<float>(device_codebooks_, codebooks_, "ivfadc codebooks", stream);
    upload<std::uint16_t>(part_of_, part_of, "ivfadc codebooks", stream);
    upload<float>(device_rotation_, rotation_.matrix(), "ivfadc rotation", stream);
    upload<std::uint8_t>(device_signs_, rotation_.signs(), "ivfadc rotation", stream);
    // Encodes rows of 8 elements, so that the halves lie as the floats do. 256 * dimensions is a multiple of 8.
    half_codebooks_ = DeviceArray<__half>(context_->pool(), codebooks_.size(), "ivfadc codebooks", owner_);
    DeviceArray<float> mean8(context_->pool(), 8, "ivfadc loading", stream);
    check(cudaMemsetAsync(mean8.data(), 0, mean8.bytes(), stream), "loading codebooks");
    encode_halves(device_codebooks_.data(), nullptr, codebooks_.size() / 8, mean8.data(), codebook_scale_, 8, 8,
                  half_codebooks_.data(), stream);
    point_view();
    DeviceArray<float> rotated;
    const float* centroids = device_centroids_.data();
    if (!rotation_.empty()) {
        rotated = DeviceArray<float>(context_->pool(), centroids_.size(), "ivfadc loading", stream);
        if (device_signs_.size() > 0) {
            hadamard_rotate_rows(centroids, lists_, dimensions_, {}, device_signs_.data(), rotated.data(), stream);
        } else {
            rotate(device_rotation_.data(), centroids, lists_, static_cast<std::uint32_t>(dimensions_), rotated.data(),
                   stream);
        }
        centroids = rotated.data();
    }
    code_terms(view_, centroids, row_terms_.data(), stream);
    wait_for(stream, "loading codebooks");
}

// Calls use(first, count) for pieces of the rows, each short enough for one launch even where it reads over the bus.
template <class Use>
void Mirror::for_pieces(std::size_t count, Use use) const
{
    const std::size_t most = std::max<std::size_t>(1, bytes_of_launch / (dimensions_ * sizeof(float)));
    for (std::size_t first = 0; first < count; first += most) use(first, std::min(most, count - first));
}

void Mirror::load_bytes(cudaStream_t stream)
{
    std::vector<float> scales(layout_.row_at.size(), 0.0F);
    for (std::size_t position = 0; position < scales.size(); ++position) {
        const std::uint32_t row = layout_.row_at[position];
        if (row == no_row) continue;
        scales[position] = code_scale_[row];
        if (!(scales[position] > 0) || !std::isfinite(scales[position])) {
            throw BadRequest("the scale of a code is impossible");
        }
    }
    upload<float>(byte_scales_, scales, "ivfadc bytes", stream);
    code_scale_ = {};
    point_view();
    byte_terms(view_, row_terms_.data(), stream);
    wait_for(stream, "loading bytes");
}

// Makes halves from full vectors, around the mean of the centroids, which is near enough to the mean of the rows.
void Mirror::make_halves(cudaStream_t stream)
{
    half_mean_ = mean_of(centroids_, dimensions_);
    if (metric_ != Metric::l2) std::fill(half_mean_.begin(), half_mean_.end(), 0.0F);
    upload<float>(device_half_mean_, half_mean_, "ivfadc half vectors", stream);
    DeviceArray<float> largest(context_->pool(), 1, "ivfadc loading", stream);
    check(cudaMemsetAsync(largest.data(), 0, largest.bytes(), stream), "measuring vectors");
    const auto dimensions = static_cast<std::uint32_t>(dimensions_);
    const std::size_t stride = half_stride(dimensions);
    const auto* vectors = remote_vectors() ? remote_.on_device<float>() : vectors_.data();
    const std::size_t row_stride = remote_vectors() ? remote_.stride() : dimensions_;
    for_pieces(rows_, [&](std::size_t first, std::size_t count) {
        largest_deviation(vectors + first * row_stride, device_half_mean_.data(), count, dimensions, row_stride,
                          largest.data(), stream);
    });
    float measured = 0;
    read_back(&measured, largest.data(), sizeof(measured), stream, "measuring vectors");
    half_scale_[0] = power_of_two(measured, half_exponent);
    for_pieces(row_at_.size(), [&](std::size_t first, std::size_t count) {
        encode_halves(vectors, row_at_.data() + first, count, device_half_mean_.data(), half_scale_[0], dimensions,
                      row_stride, halves_.data() + first * stride, stream);
    });
}

// Makes bytes from vectors on the host, as the builder does for an index with codes = int8.
void Mirror::make_bytes(ThreadPool& pool)
{
    const std::size_t most =
        std::max<std::size_t>(1, std::min<std::uint64_t>(bytes_of_launch, workspace_bytes() / 2) / dimensions_);
    std::vector<std::uint8_t> codes(std::min(most, rows_) * dimensions_);
    DeviceArray<std::byte> piece(context_->pool(), codes.size(), "ivfadc loading", owner_);
    for (std::size_t first = 0; first < rows_; first += most) {
        const std::size_t count = std::min(most, rows_ - first);
        pool.parallel_for(count, 1024, [&](std::size_t begin, std::size_t end) {
            std::vector<float> vector(dimensions_);
            for (std::size_t i = begin; i < end; ++i) {
                const std::size_t row = first + i;
                read_remote(row, vector);
                code_scale_[row] = encode_bytes(vector.data(), centroids_.data() + list_of_row_[row] * dimensions_,
                                                dimensions_, codes.data() + i * dimensions_);
            }
        });
        send(piece.data(), codes.data(), count * dimensions_, owner_, "copying codes");
        scatter_bytes(piece.data(), first * dimensions_, count * dimensions_, static_cast<std::uint32_t>(dimensions_),
                      position_of_.data(), bytes_.data(), owner_);
        owner_.stream().synchronize();
    }
    list_of_row_ = {};
}

void Mirror::finish_load(ThreadPool& pool)
{
    check(cudaSetDevice(context_->device()), "choosing the device");
    arrange();
    const cudaStream_t stream = owner_;
    remote_.lock();
    if (!(half_scale_[0] > 0) || !std::isfinite(half_scale_[0]) || !(half_scale_[1] >= 0)) {
        throw BadRequest("the scale of half vectors is impossible");
    }
    if (makes_bytes()) make_bytes(pool);
    layout_.position_of = {};
    position_of_ = {};
    load_centres(stream);
    row_terms_ = DeviceArray<float>(context_->pool(), row_at_.size(), "ivfadc terms", owner_);
    if ((halves_.size() > 0 && !options_.keeps_full()) || remote_halves()) {
        upload<float>(device_half_mean_, half_mean_, "ivfadc half vectors", stream);
    }
    if (scans_bytes_) {
        load_bytes(stream);
    } else if (scans_codes_) {
        load_codebooks(stream);
    } else {
        if (options_.keeps_full()) make_halves(stream);
        half_terms(halves_.data(), row_at_.data(), row_at_.size(), row_at_.size(),
                   static_cast<std::uint32_t>(dimensions_), metric_ == Metric::l2, row_terms_.data(), stream);
    }
    point_view();
    owner_.stream().synchronize();
    centroids_ = {};
    codebooks_ = {};
    rotation_ = {};
}

void Mirror::point_view()
{
    view_.metric = metric_;
    view_.dimensions = static_cast<std::uint32_t>(dimensions_);
    view_.stride = half_stride(view_.dimensions);
    view_.lists = static_cast<std::uint32_t>(lists_);
    view_.positions = static_cast<std::uint32_t>(row_at_.size());
    view_.list_begin = list_begin_.data();
    view_.list_length = list_length_.data();
    view_.row_at = row_at_.data();
    view_.row_terms = row_terms_.data();
    view_.centroids = device_centroids_.data();
    view_.centres = {{centre_halves_.data(), centre_mean_.data(), centre_scale_, 0}, centre_terms_.data(), view_.lists};
    view_.scans_codes = scans_codes_;
    view_.scans_bytes = scans_bytes_;
    view_.byte = {bytes_.data(), byte_scales_.data(), byte_stride(view_.dimensions)};
    view_.half = {halves_.data(), device_half_mean_.data(), half_scale_[0], half_scale_[1]};
    view_.code.codes = codes_.data();
    view_.code.codebooks = device_codebooks_.data();
    view_.code.half_codebooks = half_codebooks_.data();
    view_.code.part_of = part_of_.data();
    view_.code.rotation = device_rotation_.data();
    view_.code.signs = device_signs_.data();
    view_.code.half_scale = codebook_scale_;
    view_.code.subquantizers = static_cast<std::uint32_t>(options_.subquantizers);
    view_.code.code_groups = static_cast<std::uint32_t>((options_.subquantizers + group_codes - 1) / group_codes);
    view_.full = vectors_.data();
    view_.remote = {};
    if (remote_.empty()) return;
    view_.remote.stride = static_cast<std::uint32_t>(remote_.stride());
    if (remote_halves()) view_.remote.halves = remote_.on_device<__half>();
    if (remote_vectors()) view_.remote.full = remote_.on_device<float>();
}

std::uint64_t Mirror::device_bytes() const
{
    return position_of_.bytes() + list_begin_.bytes() + list_length_.bytes() + row_at_.bytes() + row_terms_.bytes() +
           device_centroids_.bytes() + centre_mean_.bytes() + centre_halves_.bytes() + centre_terms_.bytes() +
           halves_.bytes() + device_half_mean_.bytes() + codes_.bytes() + bytes_.bytes() + byte_scales_.bytes() +
           device_codebooks_.bytes() + half_codebooks_.bytes() + part_of_.bytes() + device_rotation_.bytes() +
           device_signs_.bytes() + vectors_.bytes();
}

std::uint64_t Mirror::host_bytes() const
{
    return remote_.bytes() + layout_.row_at.size() * sizeof(std::uint32_t);
}

}  // namespace pgwarp::cuda::ivfadc
