// Constants and plain structs shared by pages, protocol and engine. Pages store the values: never renumber.
#pragma once

#include <cstdint>
#include <cstring>

#include "protocol/methods.h"

namespace pgwarp
{

#define PGWARP_METHOD_NUMBER(name, number, on_device) name = number,
// Numbers of the index methods (protocol/methods.h).
enum class Method : std::uint8_t { PGWARP_METHODS(PGWARP_METHOD_NUMBER) };
#undef PGWARP_METHOD_NUMBER

// Element type of a row: floats, halves or bits, whose number is fixed for an index; or a list of words
// (protocol/rows.h), which for text hold its characters (protocol/text_rows.h), for sets and attributes their parts
// (protocol/part_rows.h), for bags their terms (protocol/bag_rows.h). Rows of minhash_set are sets, whose index keeps
// signatures of them and searches approximately. The words of a sparse vector are the indices of its elements, from 0,
// and the weights their values.
enum class ElementType : std::uint8_t {
    float32 = 1,
    float16 = 2,
    bit = 3,
    list = 4,
    weighted_list = 5,
    text = 6,
    set = 7,
    attribute_set = 8,
    minhash_set = 9,
    bag = 10,
    sparse = 11
};
inline constexpr ElementType last_element = ElementType::sparse;

// Whether a row is a list of words of any number.
constexpr bool is_list(ElementType element)
{
    return element >= ElementType::list && element <= last_element;
}

// Whether the words of a row have weights.
constexpr bool has_weights(ElementType element)
{
    return element == ElementType::weighted_list || element == ElementType::sparse;
}

// Whether a row is a set of elements.
constexpr bool is_any_set(ElementType element)
{
    return element == ElementType::set || element == ElementType::minhash_set;
}

// Type of the elements of a stored array.
enum class ArrayType : std::uint8_t { u8 = 1, u16 = 2, u32 = 3, u64 = 4, f16 = 5, f32 = 6, f64 = 7 };

constexpr std::uint32_t array_type_bytes(ArrayType type)
{
    switch (type) {
        case ArrayType::u8:
            return 1;
        case ArrayType::u16:
            return 2;
        case ArrayType::f16:
            return 2;
        case ArrayType::u32:
            return 4;
        case ArrayType::f32:
            return 4;
        case ArrayType::u64:
            return 8;
        case ArrayType::f64:
            return 8;
    }
    return 0;
}

// One array of an index: row-major [rows][width] of `type`.
struct ArrayShape {
    char name[16];  // zero-terminated
    ArrayType type;
    std::uint8_t reserved[7];
    std::uint64_t rows;
    std::uint64_t width;
    std::uint64_t bytes() const { return rows * width * array_type_bytes(type); }
};
static_assert(sizeof(ArrayShape) == 40);

// Returns the shape of an array; a name is cut to 15 bytes.
inline ArrayShape make_array_shape(const char* name, ArrayType type, std::uint64_t rows, std::uint64_t width)
{
    ArrayShape shape{};
    std::strncpy(shape.name, name, sizeof(shape.name) - 1);
    shape.type = type;
    shape.rows = rows;
    shape.width = width;
    return shape;
}

// A heap tuple's address; ordered by (block, offset).
struct Tid {
    std::uint32_t block;
    std::uint16_t offset;
    std::uint16_t reserved;
    friend bool operator==(const Tid& a, const Tid& b) { return a.block == b.block && a.offset == b.offset; }
    friend bool operator<(const Tid& a, const Tid& b)
    {
        return a.block != b.block ? a.block < b.block : a.offset < b.offset;
    }
};
static_assert(sizeof(Tid) == 8);

// Properties of an index that do not depend on its rows.
struct IndexShape {
    Method method;
    ElementType element;
    std::uint8_t metric;  // pgwarp::Metric; 0 for lists that the method compares in its own way
    std::uint8_t reserved[5];
    // Floats of a dense row. For bits: words of 32 bits, which take the place of floats (numeric/bits.h). For lists: an
    // upper bound that every word is below, for sparse vectors their dimensions; 0: no bound.
    std::uint32_t dimensions;
    std::uint32_t attribute_count;  // 64-bit columns of a row; 0 in indexes of versions without attributes
};
static_assert(sizeof(IndexShape) == 16);

// Arrays that every method has: the rows' heap addresses in row order.
inline constexpr char array_tid_block[] = "tid_block";    // u32 [rows][1]
inline constexpr char array_tid_offset[] = "tid_offset";  // u16 [rows][1]

// In indexes with attributes: u64 [rows][attribute_count]. As with the addresses, shared code makes and loads it, not
// the method.
inline constexpr char array_attributes[] = "attributes";

// Arrays of rows that are lists, for methods that store them unchanged: row i is words [offsets[i], offsets[i + 1]).
inline constexpr char array_list_offsets[] = "list_offsets";  // u64 [rows + 1][1]; the first is 0
inline constexpr char array_list_words[] = "list_words";      // u32 [words][1]
inline constexpr char array_list_weights[] = "list_weights";  // f32 [words][1], of weighted lists

// Calibration: effort -> recall, measured on held-out rows when the index was built.
struct CalibrationPoint {
    std::int64_t effort;  // position on the method's schedule; the method derives its settings from it
    float recall[4];      // lower confidence bound of recall@{1,10,100,1000}; negative = not measured
};
// A curve of points with ascending effort.
struct Calibration {
    static constexpr std::uint32_t capacity = 40;
    static constexpr std::uint32_t ks[4] = {1, 10, 100, 1000};
    std::uint32_t count = 0;
    std::uint32_t sample = 0;  // number of queries
    CalibrationPoint points[capacity] = {};
};

inline constexpr std::uint32_t delta_log_count = 4;
inline constexpr std::uint32_t max_dimensions = 16000;
inline constexpr std::uint32_t max_bits = 64000;
inline constexpr std::uint32_t max_k = 65536;
inline constexpr std::uint32_t max_list_words = 65536;  // of a row; with weights they take half of max_payload
inline constexpr std::uint32_t max_text_characters = 65535;
inline constexpr std::uint32_t max_attributes = 32;

// How the value of a result relates to the operator's distance on the heap row.
enum class ResultKind : std::uint8_t {
    exact = 1,        // the canonical distance itself
    lower_bound = 2,  // at most the canonical distance (the executor rechecks)
    approximate = 3,  // no bound (the backend ranks by the heap's rows)
};

// The guarantee that a method gives for its results before a search. Rounded: the bounds differ from the distances only
// by the rounding of unit vectors, so a few extra results suffice to contain the nearest rows.
struct ResultPromise {
    ResultKind kind;
    bool rounded = false;
};

// The promise for distances between stored vectors, which are unit vectors under cosine.
constexpr ResultPromise promise_of_vectors(bool is_cosine)
{
    return is_cosine ? ResultPromise{ResultKind::lower_bound, true} : ResultPromise{ResultKind::exact};
}

// One result of a search, as it is in a reply.
struct Result {
    Tid tid;
    double distance;
};
static_assert(sizeof(Result) == 16);

}  // namespace pgwarp
