// Constants and plain structs shared by pages, protocol and engine. Values are stored on disk: never renumber.
#pragma once

#include <cstdint>
#include <cstring>

#include "protocol/methods.h"

namespace pgwarp
{

#define PGWARP_METHOD_NUMBER(name, number, on_device) name = number,
enum class Method : std::uint8_t { PGWARP_METHODS(PGWARP_METHOD_NUMBER) };
#undef PGWARP_METHOD_NUMBER

// Of a row: floats, halves or bits, a fixed number of them; or a list of words (protocol/rows.h).
enum class ElementType : std::uint8_t { float32 = 1, float16 = 2, bit = 3, list = 4, weighted_list = 5 };

constexpr bool is_list(ElementType element)
{
    return element == ElementType::list || element == ElementType::weighted_list;
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

// What an index is, apart from its rows.
struct IndexShape {
    Method method;
    ElementType element;
    std::uint8_t metric;  // pgwarp::Metric; 0 of lists: the method's own comparison
    std::uint8_t reserved[5];
    // Of bits: words of 32 bits, which lie where other rows have floats (numeric/bits.h). Of lists: every word is less;
    // 0: any may come.
    std::uint32_t dimensions;
    std::uint32_t attribute_count;  // 64-bit columns of a row; 0 in all indexes from before there were any
};
static_assert(sizeof(IndexShape) == 16);

// Array names that every method has: the rows' heap addresses in row order.
inline constexpr char array_tid_block[] = "tid_block";    // u32 [rows][1]
inline constexpr char array_tid_offset[] = "tid_offset";  // u16 [rows][1]

// Of indexes with attributes: u64 [rows][attribute_count]. Like the addresses it is made, and loaded, for the method.
inline constexpr char array_attributes[] = "attributes";

// Array names of rows that are lists, for methods that keep them as they came: row i is words [offsets[i], offsets[i +
// 1]).
inline constexpr char array_list_offsets[] = "list_offsets";  // u64 [rows + 1][1]; the first is 0
inline constexpr char array_list_words[] = "list_words";      // u32 [words][1]
inline constexpr char array_list_weights[] = "list_weights";  // f32 [words][1], of weighted lists

// Calibration: effort -> recall, measured on held-out rows when the index was built.
struct CalibrationPoint {
    std::int64_t effort;  // position on the method's schedule; the method turns it into its settings
    float recall[4];      // lower confidence bound of recall@{1,10,100,1000}; negative = not measured
};
struct Calibration {
    static constexpr std::uint32_t capacity = 40;
    static constexpr std::uint32_t ks[4] = {1, 10, 100, 1000};
    std::uint32_t count = 0;
    std::uint32_t sample = 0;  // queries used
    CalibrationPoint points[capacity] = {};
};

inline constexpr std::uint32_t delta_log_count = 4;
inline constexpr std::uint32_t max_dimensions = 16000;
inline constexpr std::uint32_t max_bits = 64000;
inline constexpr std::uint32_t max_k = 65536;
inline constexpr std::uint32_t max_list_words = 65536;  // of a row; with weights they take half a message
inline constexpr std::uint32_t max_attributes = 32;

// How the value of a result relates to the operator's distance on the heap row.
enum class ResultKind : std::uint8_t {
    exact = 1,        // the canonical distance itself
    lower_bound = 2,  // never above it (executor re-checks)
    approximate = 3,  // neither (the backend re-ranks from the heap)
};

// What a method says of its results before a search. Rounded: bounds that only the rounding of unit vectors makes, so
// that few results more than wanted hold those that are wanted.
struct ResultPromise {
    ResultKind kind;
    bool rounded = false;
};

// Of distances of rows as they came, which are unit vectors under cosine.
constexpr ResultPromise promise_of_vectors(bool is_cosine)
{
    return is_cosine ? ResultPromise{ResultKind::lower_bound, true} : ResultPromise{ResultKind::exact};
}

struct Result {
    Tid tid;
    double distance;
};
static_assert(sizeof(Result) == 16);

}  // namespace pgwarp
