// Arrays of lists: their shapes, pieces and checks.
#include "methods/rows/stored_lists.h"

#include "methods/arrays.h"

namespace pgwarp
{

std::vector<ArrayShape> list_arrays(const RowView& rows)
{
    const std::uint64_t words = rows.word_count();
    std::vector<ArrayShape> arrays = {make_array_shape(array_list_offsets, ArrayType::u64, rows.count + 1, 1),
                                      make_array_shape(array_list_words, ArrayType::u32, words, 1)};
    if (rows.weights != nullptr) arrays.push_back(make_array_shape(array_list_weights, ArrayType::f32, words, 1));
    return arrays;
}

bool read_list_array(const RowView& rows, const std::string& array, std::uint64_t offset, std::span<std::byte> out)
{
    if (array == array_list_offsets) {
        read_piece(std::span(rows.offsets, rows.count + 1), offset, out);
    } else if (array == array_list_words) {
        read_piece(std::span(rows.words, rows.word_count()), offset, out);
    } else if (array == array_list_weights && rows.weights != nullptr) {
        read_piece(std::span(rows.weights, rows.word_count()), offset, out);
    } else {
        return false;
    }
    return true;
}

StoredLists::StoredLists(const IndexShape& shape, std::span<const ArrayShape> arrays) : shape_(shape)
{
    const ArrayShape* offsets = find_array(arrays, array_list_offsets);
    const ArrayShape* words = find_array(arrays, array_list_words);
    // An index without rows has no arrays at all, or empty ones.
    const std::uint64_t word_count = words != nullptr ? words->rows : 0;
    offsets_.resize(offsets != nullptr && offsets->rows > 0 ? offsets->rows : 1);
    if (!arrays.empty()) {
        require_array(arrays, array_list_offsets, ArrayType::u64, offsets_.size(), 1);
        require_array(arrays, array_list_words, ArrayType::u32, word_count, 1);
    }
    words_.resize(word_count);
    if (!has_weights(shape.element)) return;
    if (!arrays.empty()) require_array(arrays, array_list_weights, ArrayType::f32, word_count, 1);
    weights_.resize(word_count);
}

bool StoredLists::write(const std::string& array, std::uint64_t offset, std::span<const std::byte> bytes)
{
    if (array == array_list_offsets) {
        write_piece(std::span(offsets_), offset, bytes);
    } else if (array == array_list_words) {
        write_piece(std::span(words_), offset, bytes);
    } else if (array == array_list_weights) {
        write_piece(std::span(weights_), offset, bytes);
    } else {
        return false;
    }
    return true;
}

void StoredLists::finish_load() const
{
    const char* fault = offsets_fault(offsets_.data(), offsets_.size() - 1, words_.size());
    if (fault == nullptr) fault = lists_fault(rows(), shape_);
    if (fault != nullptr) throw BadRequest(fault);
}

RowView StoredLists::rows() const
{
    static constexpr float no_weight = 0;
    RowView rows;
    rows.count = offsets_.size() - 1;
    rows.offsets = offsets_.data();
    rows.words = words_.data();
    if (has_weights(shape_.element)) rows.weights = weights_.empty() ? &no_weight : weights_.data();
    return rows;
}

std::uint64_t StoredLists::memory_bytes() const
{
    return offsets_.size() * sizeof(std::uint64_t) + words_.size() * sizeof(std::uint32_t) +
           weights_.size() * sizeof(float);
}

}  // namespace pgwarp
