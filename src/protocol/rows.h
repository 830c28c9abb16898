// Rows of any shape, as messages, transfer buffers, builds, delta logs, mirrors and searches hold them. A row is dense
// (a fixed number of floats, or of words of bits in the place of floats) or a list of words: u32, strictly ascending,
// each with a float32 weight where the element type has weights; words of text, sets, attributes and bags
// have an order of their own (protocol/text_rows.h, protocol/part_rows.h, protocol/bag_rows.h). In addition a row has
// attributes: u64 columns, whose number the index's shape gives (0 without attributes).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "protocol/bag_rows.h"
#include "protocol/format.h"
#include "protocol/part_rows.h"
#include "protocol/text_rows.h"

namespace pgwarp
{

enum class RowLayout : std::uint8_t { dense = 0, lists = 1, weighted_lists = 2 };

constexpr RowLayout row_layout(ElementType element)
{
    if (!is_list(element)) return RowLayout::dense;
    return has_weights(element) ? RowLayout::weighted_lists : RowLayout::lists;
}

// A view of rows; it does not own the memory. Slices share the memory: offsets[0] of a slice need not be 0.
struct RowView {
    std::size_t count = 0;            // rows
    std::size_t width = 0;            // dense rows: floats a row
    std::size_t attribute_count = 0;  // columns
    const float* values = nullptr;    // dense rows: [count][width]
    const std::uint64_t* offsets =
        nullptr;                           // lists: [count + 1], row i is words [offsets[i], offsets[i + 1]); else null
    const std::uint32_t* words = nullptr;  // lists
    const float* weights = nullptr;        // weighted lists: of the words; else null
    const std::uint64_t* attributes = nullptr;  // [count][attribute_count]

    RowLayout layout() const
    {
        if (offsets == nullptr) return RowLayout::dense;
        return weights == nullptr ? RowLayout::lists : RowLayout::weighted_lists;
    }
    RowView slice(std::size_t first, std::size_t rows) const
    {
        RowView part = *this;
        part.count = rows;
        if (values != nullptr) part.values += first * width;
        if (offsets != nullptr) part.offsets += first;
        if (attributes != nullptr) part.attributes += first * attribute_count;
        return part;
    }
    RowView row(std::size_t i) const { return slice(i, 1); }
    std::span<const float> dense() const { return {values, count * width}; }
    std::uint64_t word_count() const { return offsets == nullptr ? 0 : offsets[count] - offsets[0]; }
    std::span<const std::uint32_t> list(std::size_t i) const
    {
        return {words + offsets[i], static_cast<std::size_t>(offsets[i + 1] - offsets[i])};
    }
    std::span<const float> list_weights(std::size_t i) const
    {
        return {weights + offsets[i], static_cast<std::size_t>(offsets[i + 1] - offsets[i])};
    }
};

// Returns a view of dense rows [count][width] without attributes.
inline RowView dense_rows(const float* values, std::size_t count, std::size_t width)
{
    RowView rows;
    rows.count = count;
    rows.width = width;
    rows.values = values;
    return rows;
}

// Describes the rows of a message together with their number and width. All zeros for dense rows without attributes.
struct RowForm {
    std::uint32_t word_count = 0;  // lists: of all rows
    std::uint16_t attribute_count = 0;
    RowLayout layout = RowLayout::dense;
    std::uint8_t reserved = 0;
};
static_assert(sizeof(RowForm) == 8);

// Layout of rows in a message or a transfer buffer, from an address that is a multiple of 8: u64
// attributes[count][attribute_count]; then for dense rows float values[count][width], for lists u64 offsets[count + 1]
// (the first is 0, the last word_count), u32 words[word_count] and, if they are weighted, float weights[word_count].
struct RowBlock {
    RowForm form;
    std::uint32_t count = 0;
    std::uint32_t width = 0;  // dense rows; else 0

    std::uint64_t attribute_bytes() const { return std::uint64_t{8} * count * form.attribute_count; }
    // Does not overflow for blocks that row_block_fault() accepts.
    std::uint64_t bytes() const
    {
        if (form.layout == RowLayout::dense) return attribute_bytes() + std::uint64_t{4} * count * width;
        const std::uint64_t each = form.layout == RowLayout::weighted_lists ? 8 : 4;
        return attribute_bytes() + 8 * (std::uint64_t{count} + 1) + each * form.word_count;
    }
};

// Checks a block's numbers; returns a description of the fault, or null.
inline const char* row_block_fault(const RowBlock& block)
{
    if (block.form.layout > RowLayout::weighted_lists) return "rows of an unknown layout";
    if (block.form.attribute_count > max_attributes) return "rows with too many attributes";
    const bool dense = block.form.layout == RowLayout::dense;
    if (dense ? block.form.word_count != 0 : block.width != 0) return "rows of two layouts";
    if (dense && block.width > max_dimensions) return "number of dimensions out of range";
    return nullptr;
}

// Returns a view of the block of block.bytes() at `bytes`. Check lists with offsets_fault() before reading any.
inline RowView view_rows(const RowBlock& block, const std::byte* bytes)
{
    RowView rows;
    rows.count = block.count;
    rows.width = block.width;
    rows.attribute_count = block.form.attribute_count;
    if (rows.attribute_count > 0) rows.attributes = reinterpret_cast<const std::uint64_t*>(bytes);
    bytes += block.attribute_bytes();
    if (block.form.layout == RowLayout::dense) {
        rows.values = reinterpret_cast<const float*>(bytes);
        return rows;
    }
    rows.offsets = reinterpret_cast<const std::uint64_t*>(bytes);
    bytes += 8 * (std::uint64_t{block.count} + 1);
    rows.words = reinterpret_cast<const std::uint32_t*>(bytes);
    if (block.form.layout == RowLayout::weighted_lists)
        rows.weights = reinterpret_cast<const float*>(bytes + std::uint64_t{4} * block.form.word_count);
    return rows;
}

// Returns the description of the block that holds a view's rows.
inline RowBlock block_of(const RowView& rows)
{
    RowBlock block;
    block.form.layout = rows.layout();
    block.form.attribute_count = static_cast<std::uint16_t>(rows.attribute_count);
    block.form.word_count = static_cast<std::uint32_t>(rows.word_count());
    block.count = static_cast<std::uint32_t>(rows.count);
    block.width = static_cast<std::uint32_t>(rows.width);
    return block;
}

// Writes that block to `out`, block_of(rows).bytes() bytes.
inline void write_rows(const RowView& rows, std::byte* out)
{
    const auto put = [&out](const void* from, std::uint64_t bytes) {
        if (bytes > 0) std::memcpy(out, from, bytes);
        out += bytes;
    };
    put(rows.attributes, 8 * rows.count * rows.attribute_count);
    if (rows.offsets == nullptr) return put(rows.values, sizeof(float) * rows.count * rows.width);
    for (std::size_t i = 0; i <= rows.count; ++i) {
        const std::uint64_t offset = rows.offsets[i] - rows.offsets[0];
        put(&offset, sizeof(offset));
    }
    put(rows.words + rows.offsets[0], sizeof(std::uint32_t) * rows.word_count());
    if (rows.weights != nullptr) put(rows.weights + rows.offsets[0], sizeof(float) * rows.word_count());
}

// Returns the number of leading rows that a block of at most `bytes` holds. For dense rows the values are not read.
inline std::size_t rows_within(const RowView& rows, std::uint64_t bytes)
{
    const std::uint64_t attribute_bytes = std::uint64_t{8} * rows.attribute_count;
    if (rows.offsets == nullptr) {
        const std::uint64_t row_bytes = attribute_bytes + sizeof(float) * rows.width;
        return bytes / row_bytes < rows.count ? static_cast<std::size_t>(bytes / row_bytes) : rows.count;
    }
    const std::uint64_t word_bytes = rows.weights == nullptr ? 4 : 8;
    std::uint64_t used = sizeof(std::uint64_t);  // the first offset
    for (std::size_t i = 0; i < rows.count; ++i) {
        used += sizeof(std::uint64_t) + attribute_bytes + word_bytes * (rows.offsets[i + 1] - rows.offsets[i]);
        if (used > bytes) return i;
    }
    return rows.count;
}

// Whether rows have the layout and the width of the index.
inline bool fits_shape(const RowView& rows, const IndexShape& shape)
{
    if (rows.layout() != row_layout(shape.element)) return false;
    return rows.offsets != nullptr || rows.width == shape.dimensions;
}

// Whether two views hold the same values, byte for byte. Attributes are not compared.
inline bool same_rows(const RowView& a, const RowView& b)
{
    if (a.layout() != b.layout() || a.count != b.count || a.width != b.width) return false;
    if (a.offsets == nullptr) return std::memcmp(a.values, b.values, sizeof(float) * a.count * a.width) == 0;
    for (std::size_t i = 0; i < a.count; ++i) {
        const auto words = a.list(i);
        if (words.size() != b.list(i).size()) return false;
        if (std::memcmp(words.data(), b.list(i).data(), words.size_bytes()) != 0) return false;
        if (a.weights == nullptr) continue;
        if (std::memcmp(a.list_weights(i).data(), b.list_weights(i).data(), words.size_bytes()) != 0) return false;
    }
    return true;
}

// Checks the offsets of lists with word_count words in total; null when every row lies within the words, otherwise a
// description of the fault.
inline const char* offsets_fault(const std::uint64_t* offsets, std::size_t count, std::uint64_t word_count)
{
    if (offsets[0] != 0 || offsets[count] != word_count) return "lists whose words have another number";
    for (std::size_t i = 0; i < count; ++i) {
        if (offsets[i] > offsets[i + 1]) return "lists whose offsets don't ascend";
        if (offsets[i + 1] > word_count) return "list past the last word";
    }
    return nullptr;
}

// Goes over the offsets of lists with word_count words in total, one by one, and checks them.
struct OffsetWalk {
    std::uint64_t word_count = 0;
    std::uint64_t begin = 0;  // the words of the last list are [begin, end)
    std::uint64_t end = 0;

    // Goes to the list that ends at `offset`. False when no list can end there.
    bool next(std::uint64_t offset)
    {
        if (offset < end || offset > word_count) return false;
        begin = end;
        end = offset;
        return true;
    }
};

// Whether the words of a row have an order of their own.
constexpr bool has_own_words(ElementType element)
{
    return element >= ElementType::text && element <= ElementType::bag;
}

// Checks the words of such a row; null when they are valid.
inline const char* words_fault(ElementType element, std::span<const std::uint32_t> words)
{
    if (element == ElementType::text) return text_fault(words);
    if (element == ElementType::bag) return bag_fault(words);
    return is_any_set(element) ? set_fault(words) : attribute_set_fault(words);
}

// Checks lists as rows of an index of this shape; null when they are valid. offsets_fault() must have passed.
inline const char* lists_fault(const RowView& rows, const IndexShape& shape)
{
    for (std::size_t i = 0; i < rows.count; ++i) {
        const std::span<const std::uint32_t> words = rows.list(i);
        if (words.size() > max_list_words) return "list with too many words";
        if (has_own_words(shape.element)) {
            const char* fault = words_fault(shape.element, words);
            if (fault != nullptr) return fault;
            continue;
        }
        for (std::size_t at = 1; at < words.size(); ++at) {
            if (words[at - 1] >= words[at]) return "list whose words don't ascend";
        }
        if (shape.dimensions != 0 && !words.empty() && words.back() >= shape.dimensions)
            return "list with a word out of range";
        if (rows.weights == nullptr) continue;
        for (const float weight : rows.list_weights(i)) {
            // For infinities and NaN, weight - weight is NaN.
            if (!(weight - weight == 0)) return "list with a weight that is not finite";
        }
    }
    return nullptr;
}

}  // namespace pgwarp
