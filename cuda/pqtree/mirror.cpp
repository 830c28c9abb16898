#include "pqtree/mirror.h"

#include <algorithm>

#include "device/error.h"
#include "device/wait.h"
#include "methods/arrays.h"
#include "pqtree/mirror_kernels.h"
#include "rows/forms.h"

namespace pgwarp::cuda::pqtree
{

namespace
{

constexpr std::uint64_t most_workspaces = std::uint64_t{1} << 30;
// Of a row, while rows are ordered.
constexpr std::uint64_t sort_bytes = 28;
constexpr std::uint64_t hashed_sort_bytes = 40;

std::size_t rows_of(std::span<const ArrayShape> arrays)
{
    const ArrayShape* codes = find_array(arrays, array_tree_codes);
    return codes != nullptr ? codes->rows : 0;
}

}  // namespace

Mirror::Mirror(Context& context, const IndexShape& shape, const ParameterList& options,
               std::span<const ArrayShape> arrays, DeviceArray<std::uint8_t> codes)
    : context_(&context),
      metric_(static_cast<Metric>(shape.metric)),
      owner_(context.lease(Priority::build)),
      stored_codes_(std::move(codes))
{
    index_.dimensions = shape.dimensions;
    index_.rows = rows_of(arrays);
    index_.options = TreeOptions::resolve(options, index_.rows, shape.dimensions);
    if (index_.rows > 0) require_pqtree_arrays(arrays, index_.options, index_.rows, index_.dimensions);
    index_.make_quantizer_room();
    slots_ = BinSlots::of(index_.tree.shape.bins(), index_.rows);
    if (slots_.slots >= UINT32_MAX || index_.rows >= rows::no_row - rows::group_rows)
        throw BadRequest("too many rows for one device");
    take_memory();
}

Mirror::~Mirror()
{
    drain(owner_);
}

std::size_t Mirror::vector_bytes() const
{
    if (index_.options.keeps_full()) return index_.rows * index_.dimensions * sizeof(float);
    if (!index_.options.keeps_half()) return 0;
    return index_.rows * rows::half_stride(static_cast<std::uint32_t>(index_.dimensions)) * sizeof(__half);
}

void Mirror::take_memory()
{
    MemoryPool& pool = context_->pool();
    const std::size_t rows = index_.rows;
    const std::size_t groups = code_groups(static_cast<std::uint32_t>(index_.options.line_parts));
    const std::uint64_t workspaces = std::min((pool.budget() != 0 ? pool.budget() : pool.room()) / 8, most_workspaces);
    const std::uint64_t loading = rows * (slots_.hashed ? hashed_sort_bytes : sort_bytes) +
                                  rows * index_.options.code_bytes() - stored_codes_.bytes();
    const std::uint64_t kept = rows * (groups * group_bytes + 6 + (slots_.hashed ? 8 : 0)) + (slots_.slots + 1) * 4;
    const std::uint64_t needed = kept + loading + workspaces;
    is_split_ = !pool.has_room(needed + vector_bytes());
    if (is_split_ && (vector_bytes() == 0 || !pool.has_room(needed))) throw std::bad_alloc();
    // A search needs the terms of all lines in shared memory.
    if (groups * group_parts * line_room * 4 + (std::size_t{64} << 10) > context_->shared_bytes_per_block())
        throw std::bad_alloc();
    const auto positions = rows::whole_groups(static_cast<std::uint32_t>(rows));
    if (stored_codes_.size() == 0)
        stored_codes_ = DeviceArray<std::uint8_t>(pool, rows * index_.options.code_bytes(), "pqtree loading", owner_);
    row_at_ = DeviceArray<std::uint32_t>(pool, positions, "pqtree rows", owner_);
    begin_ = DeviceArray<std::uint32_t>(pool, slots_.slots + 1, "pqtree lists", owner_);
    if (slots_.hashed) bin_at_ = DeviceArray<std::uint64_t>(pool, rows, "pqtree lists", owner_);
    codes_ = DeviceArray<uint4>(pool, rows * groups, "pqtree codes", owner_);
    biases_ = DeviceArray<std::uint16_t>(pool, rows, "pqtree codes", owner_);
    if (is_split_) {
        const std::size_t element = index_.options.keeps_full() ? sizeof(float) : sizeof(__half);
        remote_ = rows::RemoteRows(rows, index_.dimensions, element);
    } else if (index_.options.keeps_full()) {
        vectors_ = DeviceArray<float>(pool, rows * index_.dimensions, "pqtree vectors", owner_);
    } else if (index_.options.keeps_half()) {
        const std::size_t stride = rows::half_stride(static_cast<std::uint32_t>(index_.dimensions));
        halves_ = DeviceArray<__half>(pool, positions * stride, "pqtree half vectors", owner_);
        if (halves_.size() > 0)
            check(cudaMemsetAsync(halves_.data(), 0, halves_.bytes(), owner_), "clearing half vectors");
    }
    owner_.stream().synchronize();
}

void Mirror::write(const std::string& array, std::uint64_t offset, std::span<const std::byte> bytes)
{
    if (array == array_tree_codes || array == array_half || array == array_vectors)
        return receive(array, offset, bytes);
    index_.write_quantizer(array, offset, bytes);
}

void Mirror::receive(const std::string& array, std::uint64_t offset, std::span<const std::byte> bytes)
{
    const bool codes = array == array_tree_codes;
    if (array == array_vectors && !index_.options.keeps_full()) return;
    if (array == array_half && !index_.options.keeps_half()) return;
    if (!codes && is_split_) return remote_.write(offset, bytes);
    const Context::Lease lease = context_->lease(Priority::build);
    if (array == array_half) arrange();
    if (bytes.empty()) return;
    const std::size_t row_bytes = codes                 ? index_.options.code_bytes()
                                  : array == array_half ? index_.dimensions * sizeof(__half)
                                                        : index_.dimensions * sizeof(float);
    const std::uint64_t all = index_.rows * row_bytes;
    if (offset > all || bytes.size() > all - offset) throw BadRequest("past the end of an array");
    if (array != array_half) {
        auto* to =
            codes ? reinterpret_cast<std::byte*>(stored_codes_.data()) : reinterpret_cast<std::byte*>(vectors_.data());
        send(to + offset, bytes.data(), bytes.size(), lease, "copying rows");
    } else {
        DeviceArray<std::byte> piece(context_->pool(), bytes.size(), "pqtree loading", lease);
        send(piece.data(), bytes.data(), bytes.size(), lease, "copying rows");
        rows::scatter_halves(piece.data(), offset, bytes.size(), static_cast<std::uint32_t>(index_.dimensions),
                             position_of_.data(), halves_.data(), lease);
    }
    lease.stream().synchronize();
}

// Lays out the rows. Called after all codes and the small arrays are written.
void Mirror::arrange()
{
    arranged_.run([&] {
        index_.check_quantizer();
        tree_ = DeviceTree(*context_, metric_, index_, owner_);
        const StoredCodes stored{stored_codes_.data(), index_.rows, index_.options.code_bytes()};
        MemoryPool& pool = context_->pool();
        position_of_ = DeviceArray<std::uint32_t>(pool, index_.rows, "pqtree loading", owner_);
        DeviceArray<std::uint32_t> fault(pool, 1, "pqtree loading", owner_);
        check(cudaMemsetAsync(fault.data(), 0, fault.bytes(), owner_), "clearing a mark");
        check(cudaMemsetAsync(row_at_.data(), 0xff, row_at_.bytes(), owner_), "clearing rows");
        const RowOrder order{row_at_.data(), position_of_.data(), begin_.data(), bin_at_.data()};
        order_rows(*context_, tree_.view(), slots_, stored, order, fault.data(), owner_);
        place_codes(tree_.view(), stored, row_at_.data(), tree_.bias_step(), codes_.data(), biases_.data(), owner_);
        std::uint32_t wrong = 0;
        read_back(&wrong, fault.data(), sizeof(wrong), owner_, "reading a mark");
        if (wrong != 0) throw BadRequest("a row is in a leaf or on a line that does not exist");
        stored_codes_ = {};
    });
}

void Mirror::finish_load()
{
    if (index_.rows == 0) return;
    check(cudaSetDevice(context_->device()), "choosing the device");
    arrange();
    remote_.lock();
    if (index_.options.keeps_half()) {
        const std::vector<float>& mean = index_.half.codec.mean;
        half_mean_ = DeviceArray<float>(context_->pool(), mean.size(), "pqtree half vectors", owner_);
        send(half_mean_.data(), mean.data(), half_mean_.bytes(), owner_, "copying a mean");
    }
    position_of_ = {};
    point_view();
    owner_.stream().synchronize();
    index_.tree.level2 = {};
}

void Mirror::point_view()
{
    view_.metric = metric_;
    view_.dimensions = static_cast<std::uint32_t>(index_.dimensions);
    view_.stride = rows::half_stride(view_.dimensions);
    view_.positions = static_cast<std::uint32_t>(row_at_.size());
    view_.row_at = row_at_.data();
    view_.half = {halves_.data(), half_mean_.data(), index_.half.scale[0], index_.half.scale[1]};
    view_.full = vectors_.data();
    view_.lists = {slots_, begin_.data(), bin_at_.data(), codes_.data(), biases_.data(), 0, tree_.bias_step()};
    view_.tree = tree_.view();
    if (remote_.empty()) return;
    view_.remote.stride = static_cast<std::uint32_t>(remote_.stride());
    if (index_.options.keeps_full()) {
        view_.remote.full = remote_.on_device<float>();
    } else {
        view_.remote.halves = remote_.on_device<__half>();
    }
}

std::uint64_t Mirror::device_bytes() const
{
    return stored_codes_.bytes() + position_of_.bytes() + tree_.device_bytes() + row_at_.bytes() + begin_.bytes() +
           bin_at_.bytes() + codes_.bytes() + biases_.bytes() + halves_.bytes() + half_mean_.bytes() + vectors_.bytes();
}

}  // namespace pgwarp::cuda::pqtree
