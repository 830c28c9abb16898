// Choice and making of the form in which rows are compared on the device: bytes, halves or floats. Work on rows is cut
// into short launches, as queries wait for the running one.
#include <algorithm>
#include <iterator>
#include <new>

#include "device/wait.h"
#include "graph/mirror.h"
#include "graph/mirror_kernels.h"
#include "methods/graph/byte_choice.h"
#include "methods/graph/graph.h"
#include "rows/forms.h"

namespace pgwarp::cuda::graph
{

namespace
{

constexpr std::size_t bytes_of_launch = std::size_t{32} << 20;
constexpr std::size_t remote_bytes_of_launch = std::size_t{8} << 20;  // read over the bus
constexpr std::size_t least_piece = std::size_t{1} << 20;

}  // namespace

void Mirror::take_halves()
{
    MemoryPool& pool = context_->pool();
    const std::size_t stride = rows::half_stride(static_cast<std::uint32_t>(dimensions_));
    halves_ = DeviceArray<__half>(pool, row_numbers_.size() * stride, "graph half vectors", owner_);
    if (halves_.size() > 0) {
        check(cudaMemsetAsync(halves_.data(), 0, halves_.bytes(), owner_), "clearing half vectors");
    }
    terms_ = DeviceArray<float>(pool, row_numbers_.size(), "graph terms", owner_);
}

// The address of the full vectors for kernels.
const float* Mirror::full_rows() const
{
    return remote_.empty() ? vectors_.data() : remote_.on_device<float>();
}

// The rows of one piece: bounded by the length of a launch and by the free memory.
std::size_t Mirror::rows_of_piece() const
{
    const std::uint64_t most = remote_.empty() ? bytes_of_launch : remote_bytes_of_launch;
    const std::uint64_t bytes = std::clamp<std::uint64_t>(context_->pool().room() / 4, least_piece, most);
    return std::max<std::size_t>(1, bytes / (dimensions_ * sizeof(float)));
}

// Writes rows as floats [count][dimensions]: the numbered rows, or rows from `first` on where numbers is null.
void Mirror::copy_rows(const std::uint32_t* numbers, std::size_t first, std::size_t count, float* out)
{
    const auto dimensions = static_cast<std::uint32_t>(dimensions_);
    const std::size_t from = numbers == nullptr ? first : 0;
    if (keeps_half()) {
        const __half* halves = halves_.data() + from * rows::half_stride(dimensions);
        decode_halves(halves, device_mean_.data(), half_scale_[0], dimensions, numbers, count, out, owner_);
    } else {
        gather_vectors(full_rows() + from * full_stride(), full_stride(), dimensions, numbers, count, out, owner_);
    }
}

std::vector<float> Mirror::fetch_rows(std::span<const std::uint32_t> numbers)
{
    std::vector<float> rows(numbers.size() * dimensions_);
    const std::size_t step = std::min(rows_of_piece(), numbers.size());
    DeviceArray<std::uint32_t> chosen;
    upload<std::uint32_t>(chosen, numbers, "graph loading");
    DeviceArray<float> piece(context_->pool(), step * dimensions_, "graph loading", owner_);
    for (std::size_t first = 0; first < numbers.size(); first += step) {
        const std::size_t count = std::min(step, numbers.size() - first);
        copy_rows(chosen.data() + first, 0, count, piece.data());
        read_back(rows.data() + first * dimensions_, piece.data(), count * dimensions_ * sizeof(float), owner_,
                  "reading rows");
    }
    return rows;
}

// The mean that rows as bytes are relative to, as on the CPU.
std::vector<float> Mirror::sampled_mean()
{
    const std::vector<std::uint32_t> sample = rows_of_mean(rows_);
    const std::size_t step = rows_of_piece();
    RowMean mean(dimensions_);
    for (std::size_t first = 0; first < sample.size(); first += step) {
        const std::size_t count = std::min(step, sample.size() - first);
        const std::vector<float> rows = fetch_rows(std::span(sample).subspan(first, count));
        for (std::size_t i = 0; i < count; ++i) mean.add(rows.data() + i * dimensions_);
    }
    return mean.mean();
}

// Bytes beside halves must leave room for the workspaces of searches, and do not evict other indexes.
bool Mirror::has_room_for_bytes() const
{
    return context_->pool().room() >= byte_rows_bytes({rows_, seeds_, dimensions_}) + workspace_bytes();
}

// Whether bytes tell near rows apart, probed on the same rows as on the CPU.
bool Mirror::bytes_serve(std::span<const float> mean)
{
    const std::size_t degree = options_.degree;
    const std::vector<std::uint32_t> probed = rows_of_probe(rows_);
    std::vector<std::uint32_t> edges(probed.size() * degree);
    {
        DeviceArray<std::uint32_t> chosen;
        upload<std::uint32_t>(chosen, probed, "graph loading");
        DeviceArray<std::uint32_t> gathered(context_->pool(), edges.size(), "graph loading", owner_);
        gather_neighbours(neighbours_.data(), degree, chosen.data(), probed.size(), gathered.data(), owner_);
        read_back(edges.data(), gathered.data(), gathered.bytes(), owner_, "reading neighbours");
    }
    ByteProbe probe(metric_, mean);
    const std::size_t step = std::max<std::size_t>(1, rows_of_piece() / (degree + 1));
    for (std::size_t first = 0; first < probed.size(); first += step) {
        std::vector<std::uint32_t> numbers;  // each probed row, followed by its neighbours
        std::vector<std::size_t> counts;
        for (std::size_t i = first; i < std::min(first + step, probed.size()); ++i) {
            numbers.push_back(probed[i]);
            const std::size_t before = numbers.size();
            std::copy_if(edges.begin() + static_cast<std::ptrdiff_t>(i * degree),
                         edges.begin() + static_cast<std::ptrdiff_t>((i + 1) * degree), std::back_inserter(numbers),
                         [](std::uint32_t neighbour) { return neighbour != no_neighbour; });
            counts.push_back(numbers.size() - before);
        }
        const std::vector<float> rows = fetch_rows(numbers);
        const float* at = rows.data();
        for (const std::size_t count : counts) {
            probe.add(at, at + dimensions_, count);
            at += (count + 1) * dimensions_;
        }
    }
    return probe.tells_apart();
}

// Chooses the form. Where it is bytes, byte_mean becomes the mean that the bytes are relative to.
TraversalForm Mirror::choose_row_form(std::vector<float>& byte_mean)
{
    const TraversalForm otherwise =
        vectors_.size() > 0 && metric_ != Metric::l1 ? TraversalForm::floats : TraversalForm::halves;
    if (!may_compare_bytes(metric_, dimensions_)) return otherwise;
    if (keeps_half() && !has_room_for_bytes()) return otherwise;
    byte_mean = keeps_full() && squared() ? half_mean_ : sampled_mean();
    return bytes_serve(byte_mean) ? TraversalForm::bytes : otherwise;
}

void Mirror::load_vectors()
{
    if (keeps_full() && squared()) half_mean_ = sampled_mean();
    upload<float>(device_mean_, half_mean_, "graph half vectors");
    std::vector<float> byte_mean;
    view_.form = choose_row_form(byte_mean);
    reserved_ = {};
    if (keeps_full() && view_.form == TraversalForm::halves) {
        take_halves();
        make_halves();
    }
    if (halves_.size() > 0) {
        rows::half_terms(halves_.data(), row_numbers_.data(), row_numbers_.size(), row_numbers_.size(),
                         static_cast<std::uint32_t>(dimensions_), squared(), terms_.data(), owner_);
        gather_seeds();
    } else {
        make_seeds();
    }
    if (view_.form != TraversalForm::bytes) return;
    try {
        make_bytes(byte_mean);
    } catch (const std::bad_alloc&) {
        // Another index has taken the memory meanwhile.
        if (!keeps_half()) throw;
        codes_ = {};
        code_terms_ = {};
        byte_mean_ = {};
        view_.form = TraversalForm::halves;
    }
}

void Mirror::choose_scale(float largest)
{
    half_scale_[0] = rows::power_of_two(largest, rows::half_exponent);
    half_scale_[1] = 0;
}

// Makes the halves from the full vectors.
void Mirror::make_halves()
{
    const auto dimensions = static_cast<std::uint32_t>(dimensions_);
    const float* rows = full_rows();
    const std::size_t step = rows_of_piece();
    DeviceArray<float> largest(context_->pool(), 1, "graph loading", owner_);
    check(cudaMemsetAsync(largest.data(), 0, largest.bytes(), owner_), "measuring vectors");
    for (std::size_t first = 0; first < rows_; first += step) {
        rows::largest_deviation(rows + first * full_stride(), device_mean_.data(), std::min(step, rows_ - first),
                                dimensions, full_stride(), largest.data(), owner_);
    }
    float measured = 0;
    read_back(&measured, largest.data(), sizeof(measured), owner_, "measuring");
    choose_scale(measured);
    const std::size_t stride = rows::half_stride(dimensions);
    for (std::size_t first = 0; first < rows_; first += step) {
        rows::encode_halves(rows + first * full_stride(), nullptr, std::min(step, rows_ - first), device_mean_.data(),
                            half_scale_[0], dimensions, full_stride(), halves_.data() + first * stride, owner_);
    }
}

// Copies the seeds' halves from the rows' halves.
void Mirror::gather_seeds()
{
    const std::size_t padded = rows::whole_groups(static_cast<std::uint32_t>(seeds_));
    const std::uint32_t stride = rows::half_stride(static_cast<std::uint32_t>(dimensions_));
    seed_halves_ = DeviceArray<__half>(context_->pool(), padded * stride, "graph seeds", owner_);
    seed_terms_ = DeviceArray<float>(context_->pool(), padded, "graph seeds", owner_);
    gather_halves(halves_.data(), terms_.data(), device_seeds_.data(), seeds_, padded, stride, seed_halves_.data(),
                  seed_terms_.data(), owner_);
}

// Makes the seeds' halves from full vectors, as the rows have no halves.
void Mirror::make_seeds()
{
    const auto dimensions = static_cast<std::uint32_t>(dimensions_);
    const std::size_t padded = rows::whole_groups(static_cast<std::uint32_t>(seeds_));
    const std::uint32_t stride = rows::half_stride(dimensions);
    seed_halves_ = DeviceArray<__half>(context_->pool(), padded * stride, "graph seeds", owner_);
    seed_terms_ = DeviceArray<float>(context_->pool(), padded, "graph seeds", owner_);
    check(cudaMemsetAsync(seed_halves_.data(), 0, seed_halves_.bytes(), owner_), "clearing seeds");
    const std::size_t step = std::min(rows_of_piece(), seeds_);
    DeviceArray<float> piece(context_->pool(), step * dimensions_, "graph loading", owner_);
    DeviceArray<float> largest(context_->pool(), 1, "graph loading", owner_);
    check(cudaMemsetAsync(largest.data(), 0, largest.bytes(), owner_), "measuring seeds");
    for (std::size_t first = 0; first < seeds_; first += step) {
        const std::size_t count = std::min(step, seeds_ - first);
        copy_rows(device_seeds_.data() + first, 0, count, piece.data());
        rows::largest_deviation(piece.data(), device_mean_.data(), count, dimensions, dimensions_, largest.data(),
                                owner_);
    }
    float measured = 0;
    read_back(&measured, largest.data(), sizeof(measured), owner_, "measuring");
    choose_scale(measured);
    for (std::size_t first = 0; first < seeds_; first += step) {
        rows::encode_halves(full_rows(), device_seeds_.data() + first, std::min(step, seeds_ - first),
                            device_mean_.data(), half_scale_[0], dimensions, full_stride(),
                            seed_halves_.data() + first * stride, owner_);
    }
    rows::half_terms(seed_halves_.data(), nullptr, seeds_, padded, dimensions, squared(), seed_terms_.data(), owner_);
}

void Mirror::make_bytes(std::span<const float> mean)
{
    MemoryPool& pool = context_->pool();
    const auto dimensions = static_cast<std::uint32_t>(dimensions_);
    const std::uint32_t stride = rows::byte_stride(dimensions);
    codes_ = DeviceArray<std::int8_t>(pool, rows_ * stride, "graph byte rows", owner_);
    code_terms_ = DeviceArray<float2>(pool, rows_, "graph byte rows", owner_);
    const bool in_place = vectors_.size() > 0;
    const std::size_t step = std::min(rows_of_piece(), rows_);
    upload<float>(byte_mean_, mean, "graph byte rows");
    DeviceArray<float> floats(pool, in_place ? 0 : step * dimensions_, "graph loading", owner_);
    DeviceArray<std::uint8_t> plain(pool, step * dimensions_, "graph loading", owner_);
    DeviceArray<float> scales(pool, step, "graph loading", owner_);
    for (std::size_t first = 0; first < rows_; first += step) {
        const std::size_t count = std::min(step, rows_ - first);
        if (!in_place) copy_rows(nullptr, first, count, floats.data());
        const float* rows = in_place ? vectors_.data() + first * dimensions_ : floats.data();
        rows::encode_byte_rows(rows, count, dimensions, nullptr, byte_mean_.data(), plain.data(), scales.data(),
                               owner_);
        finish_byte_rows(plain.data(), scales.data(), count, dimensions, stride, metric_ == Metric::l2,
                         codes_.data() + first * stride, code_terms_.data() + first, owner_);
    }
    seed_codes_ = DeviceArray<std::int8_t>(pool, seeds_ * stride, "graph seeds", owner_);
    seed_code_terms_ = DeviceArray<float2>(pool, seeds_, "graph seeds", owner_);
    gather_byte_rows(codes_.data(), code_terms_.data(), device_seeds_.data(), seeds_, stride, seed_codes_.data(),
                     seed_code_terms_.data(), owner_);
    owner_.stream().synchronize();
}

}  // namespace pgwarp::cuda::graph
