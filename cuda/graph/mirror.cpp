#include "graph/mirror.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "device/error.h"
#include "device/wait.h"
#include "graph/mirror_kernels.h"
#include "methods/arrays.h"
#include "methods/description.h"
#include "rows/forms.h"

namespace pgwarp::cuda::graph
{

namespace
{

constexpr std::uint64_t most_workspaces = std::uint64_t{1} << 30;

std::uint64_t rows_of(std::span<const ArrayShape> arrays, const char* name)
{
    const ArrayShape* shape = find_array(arrays, name);
    return shape != nullptr ? shape->rows : 0;
}

}  // namespace

Mirror::Mirror(Context& context, const IndexShape& shape, const ParameterList& options,
               std::span<const ArrayShape> arrays)
    : context_(&context),
      metric_(static_cast<Metric>(shape.metric)),
      dimensions_(shape.dimensions),
      rows_(rows_of(arrays, array_neighbours)),
      seeds_(rows_of(arrays, array_seeds)),
      options_(GraphOptions::resolve(options, shape.dimensions)),
      seed_rows_(seeds_),
      half_mean_(dimensions_, 0.0F),
      owner_(context.lease(Priority::build))
{
    if (rows_ >= most_rows) throw BadRequest("too many rows for one device");
    if (rows_ > 0) require_graph_arrays(arrays, shape, options_);
    changes_.resize(rows_of(arrays, array_edge_changes));
    if (keeps_bits()) projection_.resize(options_.bits * (dimensions_ + 1));
    choose_form();
    take_memory();
}

// Searches wait for their work, so none is under way here.
Mirror::~Mirror() = default;

std::uint64_t Mirror::workspace_bytes() const
{
    const MemoryPool& pool = context_->pool();
    const std::uint64_t all = pool.budget() != 0 ? pool.budget() : pool.room();
    return std::min(all / 8, most_workspaces);
}

// Leaves memory for the workspaces of searches, without which a resident index is useless, and for the load itself.
void Mirror::choose_form()
{
    MemoryPool& pool = context_->pool();
    const std::uint64_t workspaces = workspace_bytes();
    for (const Form form : forms_of(options_)) {
        form_ = form;
        if (pool.has_room(device_bytes_of(options_, {rows_, seeds_, dimensions_}, form) + workspaces)) return;
    }
    throw std::bad_alloc();
}

void Mirror::take_memory()
{
    MemoryPool& pool = context_->pool();
    const std::size_t positions = rows::whole_groups(static_cast<std::uint32_t>(rows_));
    neighbours_ = DeviceArray<std::uint32_t>(pool, rows_ * options_.degree, "graph neighbours", owner_);
    row_numbers_ = DeviceArray<std::uint32_t>(pool, positions, "graph rows", owner_);
    number_rows(static_cast<std::uint32_t>(rows_), positions, row_numbers_.data(), owner_);
    if (keeps_bits()) {
        bits_ = DeviceArray<std::uint32_t>(pool, rows_ * options_.bits / 32, "graph bits", owner_);
    } else if (keeps_half()) {
        take_halves();
    } else {
        const std::size_t stride = rows::half_stride(static_cast<std::uint32_t>(dimensions_));
        reserved_ = DeviceArray<std::byte>(pool, positions * (stride * sizeof(__half) + sizeof(float)), "graph loading",
                                           owner_);
    }
    if (keeps_full() && form_ == Form::ranked) {
        remote_ = rows::RemoteRows(rows_, dimensions_, sizeof(float));
    } else if (keeps_full()) {
        vectors_ = DeviceArray<float>(pool, rows_ * dimensions_, "graph vectors", owner_);
    }
    owner_.stream().synchronize();
}

void Mirror::write(const std::string& array, std::uint64_t offset, std::span<const std::byte> bytes)
{
    if (array == array_seeds) return write_piece(std::span<std::uint32_t>(seed_rows_), offset, bytes);
    if (array == array_neighbours) return copy_in(neighbours_.data(), neighbours_.bytes(), offset, bytes);
    if (array == array_edge_changes) return write_piece(std::span<EdgeChange>(changes_), offset, bytes);
    if (keeps_bits()) {
        if (array == array_projection) return write_piece(std::span<float>(projection_), offset, bytes);
        if (array == array_bits) return copy_in(bits_.data(), bits_.bytes(), offset, bytes);
    }
    if (keeps_half()) {
        if (array == array_half_mean) return write_piece(std::span<float>(half_mean_), offset, bytes);
        if (array == array_half_scale) return write_piece(std::span<float>(half_scale_), offset, bytes);
        if (array == array_half) return write_halves(offset, bytes);
    }
    if (keeps_full() && array == array_vectors) {
        if (form_ == Form::ranked) return remote_.write(offset, bytes);
        return copy_in(vectors_.data(), vectors_.bytes(), offset, bytes);
    }
    // This form does not need the other arrays.
}

void Mirror::copy_in(void* to, std::size_t size, std::uint64_t offset, std::span<const std::byte> bytes)
{
    if (offset > size || bytes.size() > size - offset) throw BadRequest("past the end of an array");
    if (bytes.empty()) return;
    const Context::Lease lease = context_->lease(Priority::build);
    check(cudaMemcpyAsync(static_cast<std::byte*>(to) + offset, bytes.data(), bytes.size(), cudaMemcpyHostToDevice,
                          lease),
          "copying rows");
    lease.stream().synchronize();
}

void Mirror::write_halves(std::uint64_t offset, std::span<const std::byte> bytes)
{
    const std::size_t size = rows_ * dimensions_ * sizeof(__half);
    if (offset > size || bytes.size() > size - offset) throw BadRequest("past the end of an array");
    if (bytes.empty()) return;
    const Context::Lease lease = context_->lease(Priority::build);
    DeviceArray<std::byte> piece(context_->pool(), bytes.size(), "graph loading", lease);
    check(cudaMemcpyAsync(piece.data(), bytes.data(), bytes.size(), cudaMemcpyHostToDevice, lease), "copying rows");
    rows::scatter_halves(piece.data(), offset, bytes.size(), static_cast<std::uint32_t>(dimensions_),
                         row_numbers_.data(), halves_.data(), lease);
    lease.stream().synchronize();
}

// Applies the changes that merges have made to the neighbours since these were written.
void Mirror::change_neighbours()
{
    const std::vector<EdgeChange> last = last_changes(rows_, options_.degree, changes_);
    changes_ = {};
    if (last.empty()) return;
    DeviceArray<EdgeChange> changes;
    upload<EdgeChange>(changes, last, "graph loading");
    change_edges(changes.data(), changes.size(), options_.degree, neighbours_.data(), owner_);
    owner_.stream().synchronize();
}

void Mirror::check_rows()
{
    for (const std::uint32_t row : seed_rows_) {
        if (row >= rows_) throw BadRequest("a seed is no row of its index");
    }
    // Traversals that compare all seeds themselves take each for a different row, so repeats are removed.
    std::unordered_set<std::uint32_t> seen;
    std::erase_if(seed_rows_, [&](std::uint32_t row) { return !seen.insert(row).second; });
    seeds_ = seed_rows_.size();
    DeviceArray<std::uint32_t> wrong(context_->pool(), 1, "graph loading", owner_);
    check(cudaMemsetAsync(wrong.data(), 0, wrong.bytes(), owner_), "checking neighbours");
    count_wrong(neighbours_.data(), neighbours_.size(), static_cast<std::uint32_t>(rows_), wrong.data(), owner_);
    std::uint32_t found = 0;
    read_back(&found, wrong.data(), sizeof(found), owner_, "checking neighbours");
    if (found > 0) throw BadRequest("a neighbour is no row of its index");
}

void Mirror::load_bits()
{
    upload<float>(device_projection_, projection_, "graph projection");
}

void Mirror::finish_load()
{
    check(cudaSetDevice(context_->device()), "choosing the device");
    remote_.lock();
    if (!(half_scale_[0] > 0) || !std::isfinite(half_scale_[0]) || !(half_scale_[1] >= 0)) {
        throw BadRequest("the scale of half vectors is impossible");
    }
    if (keeps_bits()) view_.form = TraversalForm::bits;
    if (rows_ > 0) {
        change_neighbours();
        check_rows();
        upload<std::uint32_t>(device_seeds_, seed_rows_, "graph seeds");
        if (keeps_bits()) {
            load_bits();
        } else {
            load_vectors();
        }
    }
    reserved_ = {};
    point_view();
    owner_.stream().synchronize();
    seed_rows_ = {};
    projection_ = {};
}

void Mirror::point_view()
{
    view_.metric = metric_;
    view_.rows = static_cast<std::uint32_t>(rows_);
    view_.degree = static_cast<std::uint32_t>(options_.degree);
    view_.seeds = static_cast<std::uint32_t>(seeds_);
    view_.neighbours = neighbours_.data();
    view_.seed_rows = device_seeds_.data();
    view_.l1_error = half_scale_[1] * std::sqrt(static_cast<double>(dimensions_));
    view_.bits = {bits_.data(), device_projection_.data(), static_cast<std::uint32_t>(options_.bits / 32)};
    view_.bytes = {codes_.data(), code_terms_.data(), metric_ == Metric::l2 ? byte_mean_.data() : nullptr, 0};
    if (view_.form == TraversalForm::bytes) {
        view_.bytes.stride = rows::byte_stride(static_cast<std::uint32_t>(dimensions_));
        view_.bytes.seeds = seed_codes_.data();
        view_.bytes.seed_terms = seed_code_terms_.data();
    }
    rows::ResidentRows& vectors = view_.vectors;
    vectors.metric = metric_ == Metric::l1 ? Metric::l2 : metric_;
    vectors.dimensions = static_cast<std::uint32_t>(dimensions_);
    vectors.stride = rows::half_stride(vectors.dimensions);
    vectors.positions = static_cast<std::uint32_t>(row_numbers_.size());
    vectors.row_at = row_numbers_.data();
    vectors.row_terms = terms_.data();
    view_.seed_halves = {
        {seed_halves_.data(), device_mean_.data(), half_scale_[0], 0}, seed_terms_.data(), view_.seeds};
    vectors.half = {halves_.data(), device_mean_.data(), half_scale_[0], half_scale_[1]};
    vectors.full = vectors_.data();
    if (remote_.empty()) return;
    vectors.remote.stride = static_cast<std::uint32_t>(remote_.stride());
    vectors.remote.full = remote_.on_device<float>();
}

namespace
{

// The bytes of a row that a score reads, and the bytes of a query in shared memory.
std::pair<std::size_t, std::size_t> compared_bytes(const GraphView& view, std::size_t dimensions)
{
    const std::size_t stride = rows::half_stride(static_cast<std::uint32_t>(dimensions));
    switch (view.form) {
        case TraversalForm::bits:
            return {view.bits.words * sizeof(std::uint32_t), view.bits.words * sizeof(std::uint32_t)};
        case TraversalForm::bytes:
            return {view.bytes.stride, byte_query_header + view.bytes.stride};
        case TraversalForm::floats:
            return {dimensions * sizeof(float), (dimensions + 3) / 4 * 4 * sizeof(float)};
        case TraversalForm::halves:
            break;
    }
    return {stride * sizeof(__half), stride * sizeof(float)};
}

}  // namespace

DeviceLimits Mirror::limits() const
{
    DeviceLimits limits;
    limits.rows = rows_;
    limits.degree = options_.degree;
    limits.seeds = seeds_;
    std::tie(limits.row_bytes, limits.query_bytes) = compared_bytes(view_, dimensions_);
    limits.multiprocessors = static_cast<std::size_t>(context_->multiprocessors());
    limits.shared_bytes = context_->shared_bytes_per_block();
    limits.clusters = context_->has_warp_group_matrix();
    limits.bits = keeps_bits();
    return limits;
}

std::uint64_t Mirror::device_bytes() const
{
    return row_numbers_.bytes() + neighbours_.bytes() + device_seeds_.bytes() + reserved_.bytes() + halves_.bytes() +
           terms_.bytes() + codes_.bytes() + code_terms_.bytes() + seed_codes_.bytes() + seed_code_terms_.bytes() +
           byte_mean_.bytes() + device_mean_.bytes() + seed_halves_.bytes() + seed_terms_.bytes() + vectors_.bytes() +
           bits_.bytes() + device_projection_.bytes();
}

}  // namespace pgwarp::cuda::graph
