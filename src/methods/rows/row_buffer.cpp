// Rows of a build in reserved address space: growth never copies, and dense rows are sorted and compacted in place.
#include "methods/rows/row_buffer.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "methods/errors.h"
#include "methods/rows/reservation.h"
#include "methods/rows/row_order.h"

namespace pgwarp
{

namespace
{

constexpr std::size_t most_rows = (std::size_t{1} << 32) - 2;  // row numbers have 32 bits
constexpr std::size_t most_buffer_bytes = std::size_t{1} << 44;
constexpr std::size_t most_list_bytes = std::size_t{1} << 40;  // many builds fit into one address space

IndexShape dense_shape(std::size_t dimensions)
{
    IndexShape shape{};
    shape.element = ElementType::float32;
    shape.dimensions = static_cast<std::uint32_t>(dimensions);
    return shape;
}

// The lists of a build, one behind the other.
struct Lists {
    explicit Lists(bool weighted) : offsets((most_rows + 1) * sizeof(std::uint64_t)), words(most_list_bytes)
    {
        offsets.grow(sizeof(std::uint64_t));  // the first is 0
        if (weighted) weights.emplace(most_list_bytes);
    }
    void grow(std::size_t rows, std::uint64_t to_words)
    {
        offsets.grow((rows + 1) * sizeof(std::uint64_t));
        words.grow(to_words * sizeof(std::uint32_t));
        if (weights) weights->grow(to_words * sizeof(float));
    }
    // Copies lists to row `first`, whose words begin at `word`. The caller that puts the rows before sets offset
    // `first`.
    void put(std::size_t first, std::uint64_t word, const RowView& rows)
    {
        if (rows.count == 0) return;
        for (std::size_t i = 1; i <= rows.count; ++i)
            offsets.as<std::uint64_t>()[first + i] = word + rows.offsets[i] - rows.offsets[0];
        const std::uint64_t count = rows.word_count();
        if (count == 0) return;
        std::memcpy(words.as<std::uint32_t>() + word, rows.words + rows.offsets[0], count * sizeof(std::uint32_t));
        if (!weights) return;
        std::memcpy(weights->as<float>() + word, rows.weights + rows.offsets[0], count * sizeof(float));
    }

    Reservation offsets;
    Reservation words;
    std::optional<Reservation> weights;
};

}  // namespace

struct RowBuffer::State {
    explicit State(const IndexShape& shape)
        : layout(row_layout(shape.element)),
          width(layout == RowLayout::dense ? shape.dimensions : 0),
          attribute_count(shape.attribute_count),
          tids(most_rows * sizeof(Tid))
    {
        if (layout == RowLayout::dense) {
            vectors.emplace(std::min(most_buffer_bytes / (width * sizeof(float)), most_rows) * width * sizeof(float));
        } else {
            lists = std::make_unique<Lists>(layout == RowLayout::weighted_lists);
        }
        if (attribute_count > 0) attributes = make_attributes();
    }
    Tid* tid() const { return tids.as<Tid>(); }
    float* vector() const { return vectors->as<float>(); }
    std::unique_ptr<Reservation> make_attributes() const
    {
        return std::make_unique<Reservation>(most_rows * attribute_count * sizeof(std::uint64_t));
    }
    void require_layout(std::span<const Tid> from, const RowView& rows) const;
    // The first row of a reserved range, and its first word.
    struct Place {
        std::size_t row;
        std::uint64_t word;
    };
    Place reserve(const RowView& rows);
    void sort_attributes(const std::vector<std::uint32_t>& order);
    void sort_lists(const std::vector<std::uint32_t>& order);

    const RowLayout layout;
    const std::size_t width;
    const std::size_t attribute_count;
    std::mutex mutex;
    std::size_t size = 0;
    std::uint64_t word_count = 0;
    bool compacted = false;
    Reservation tids;
    std::optional<Reservation> vectors;       // of dense rows
    std::unique_ptr<Lists> lists;             // of others
    std::unique_ptr<Reservation> attributes;  // where there are any
};

RowBuffer::RowBuffer(std::size_t dimensions) : RowBuffer(dense_shape(dimensions)) {}
RowBuffer::RowBuffer(const IndexShape& shape) : state_(std::make_unique<State>(shape)) {}
RowBuffer::~RowBuffer() = default;

std::size_t RowBuffer::size() const
{
    return state_->size;
}
std::size_t RowBuffer::dimensions() const
{
    return state_->width;
}
std::span<const Tid> RowBuffer::tids() const
{
    return {state_->tid(), state_->size};
}
std::span<float> RowBuffer::vectors()
{
    if (state_->compacted || !state_->vectors) return {};
    return {state_->vector(), state_->size * state_->width};
}

RowView RowBuffer::rows() const
{
    RowView rows;
    rows.count = state_->size;
    rows.width = state_->width;
    rows.attribute_count = state_->attribute_count;
    if (state_->attributes) rows.attributes = state_->attributes->as<std::uint64_t>();
    if (state_->vectors && !state_->compacted) rows.values = state_->vector();
    if (!state_->lists) return rows;
    rows.offsets = state_->lists->offsets.as<std::uint64_t>();
    rows.words = state_->lists->words.as<std::uint32_t>();
    if (state_->lists->weights) rows.weights = state_->lists->weights->as<float>();
    return rows;
}

void RowBuffer::State::require_layout(std::span<const Tid> from, const RowView& rows) const
{
    if (rows.layout() != layout) throw BadRequest("rows of another kind than the build's");
    if (rows.count != from.size()) throw BadRequest("rows and addresses differ in number");
    if (rows.count > 0 && (rows.width != width || rows.attribute_count != attribute_count))
        throw BadRequest("rows of another width than the build's");
}

RowBuffer::State::Place RowBuffer::State::reserve(const RowView& rows)
{
    const std::lock_guard lock(mutex);
    const std::size_t wanted = size + rows.count;
    const std::uint64_t words = word_count + rows.word_count();
    if (wanted > most_rows) throw BadRequest("too many rows for one build");
    tids.grow(wanted * sizeof(Tid));
    if (vectors) vectors->grow(wanted * width * sizeof(float));
    if (lists) lists->grow(wanted, words);
    if (attributes) attributes->grow(wanted * attribute_count * sizeof(std::uint64_t));
    return {std::exchange(size, wanted), std::exchange(word_count, words)};
}

std::span<float> RowBuffer::append(std::span<const Tid> tids, const RowView& rows)
{
    state_->require_layout(tids, rows);
    const State::Place to = state_->reserve(rows);
    float* const out = state_->vectors ? state_->vector() + to.row * state_->width : nullptr;
    if (tids.empty()) return {out, 0};
    std::memcpy(state_->tid() + to.row, tids.data(), tids.size_bytes());
    if (state_->attributes) {
        const std::size_t columns = state_->attribute_count;
        std::memcpy(state_->attributes->as<std::uint64_t>() + to.row * columns, rows.attributes,
                    rows.count * columns * sizeof(std::uint64_t));
    }
    if (state_->lists) {
        state_->lists->put(to.row, to.word, rows);
        return {};
    }
    std::memcpy(out, rows.values, rows.dense().size_bytes());
    return {out, rows.dense().size()};
}

std::span<float> RowBuffer::append(std::span<const Tid> tids, std::span<const float> vectors)
{
    if (vectors.size() != tids.size() * state_->width) throw BadRequest("rows and addresses differ in number");
    return append(tids, dense_rows(vectors.data(), tids.size(), state_->width));
}

void RowBuffer::State::sort_attributes(const std::vector<std::uint32_t>& order)
{
    auto sorted = make_attributes();
    const std::size_t bytes = attribute_count * sizeof(std::uint64_t);
    sorted->grow(size * bytes);
    for (std::size_t i = 0; i < size; ++i)
        std::memcpy(sorted->as<char>() + i * bytes, attributes->as<char>() + order[i] * bytes, bytes);
    attributes = std::move(sorted);
}

void RowBuffer::State::sort_lists(const std::vector<std::uint32_t>& order)
{
    auto sorted = std::make_unique<Lists>(layout == RowLayout::weighted_lists);
    sorted->grow(size, word_count);
    RowView from;
    from.count = size;
    from.offsets = lists->offsets.as<std::uint64_t>();
    from.words = lists->words.as<std::uint32_t>();
    if (lists->weights) from.weights = lists->weights->as<float>();
    const std::vector<Tid> unsorted(tid(), tid() + size);
    for (std::size_t i = 0; i < size; ++i) {
        tid()[i] = unsorted[order[i]];
        sorted->put(i, sorted->offsets.as<std::uint64_t>()[i], from.row(order[i]));
    }
    lists = std::move(sorted);
}

void RowBuffer::sort_by_tid(ThreadPool* pool)
{
    if (std::is_sorted(state_->tid(), state_->tid() + state_->size)) return;
    ThreadPool alone(1);
    ThreadPool& threads = pool != nullptr ? *pool : alone;
    std::vector<std::uint32_t> order = order_of(tids(), threads);
    if (state_->attributes) state_->sort_attributes(order);
    if (state_->lists) return state_->sort_lists(order);
    permute_rows(state_->tids.as<std::byte>(), sizeof(Tid), order, threads);
    permute_rows(state_->vectors->as<std::byte>(), state_->width * sizeof(float), std::move(order), threads);
}

std::span<const std::uint16_t> RowBuffer::compact_to_half(
    const std::function<void(const float* row, std::uint16_t* out)>& encode)
{
    const std::size_t width = state_->width;
    auto* halves = state_->vectors->as<std::uint16_t>();
    std::vector<std::uint16_t> encoded(width);
    // Row i's halves end at or before its floats begin, but for row 0: hence the detour over `encoded`.
    for (std::size_t i = 0; i < state_->size; ++i) {
        encode(state_->vector() + i * width, encoded.data());
        std::memcpy(halves + i * width, encoded.data(), width * sizeof(std::uint16_t));
    }
    return replace_by_half();
}

std::span<std::uint16_t> RowBuffer::replace_by_half()
{
    const std::size_t count = state_->size * state_->width;
    state_->vectors->release(count * sizeof(std::uint16_t), count * sizeof(float));
    state_->compacted = true;
    return {state_->vectors->as<std::uint16_t>(), count};
}

}  // namespace pgwarp
