#include "postgres/maintenance/graph_structure.h"

namespace pgwarp
{

namespace
{

constexpr uint64 step_bytes = 4U << 20;
constexpr uint32 no_neighbour = PG_UINT32_MAX;

// What is wrong with the neighbours of a row, of an index of so many rows; null when nothing is.
const char* fault_of_row(const uint32* neighbours, uint64 degree, uint64 row, uint64 rows)
{
    uint64 count = 0;
    while (count < degree && neighbours[count] != no_neighbour) ++count;
    for (uint64 i = count; i < degree; ++i) {
        if (neighbours[i] != no_neighbour) return "a row has a neighbour after an unused place";
    }
    for (uint64 i = 0; i < count; ++i) {
        if (neighbours[i] >= rows) return "a row has a neighbour that does not exist";
        if (neighbours[i] == row) return "a row is its own neighbour";
        uint32 same = 0;
        for (uint64 other = 0; other < i; ++other) same += neighbours[other] == neighbours[i];
        if (same > 0) return "a row has a neighbour twice";
    }
    return nullptr;
}

const char* fault_of_seed(const uint32* seed, uint64, uint64, uint64 rows)
{
    return *seed < rows ? nullptr : "a seed is a row that does not exist";
}

using FindRowFault = const char* (*)(const uint32* values, uint64 width, uint64 row, uint64 rows);

ReadResult find_in_array(Relation index, const Directory& directory, const StoredArray& array, FindRowFault find,
                         GraphFault* fault)
{
    const uint64 row_bytes = array.shape.width * sizeof(uint32);
    if (array.shape.type != ArrayType::u32 || array.shape.width == 0) {
        *fault = {"an array has another shape than the method's", array_page_block(array, 0)};
        return ReadResult::done;
    }
    const uint64 step = Max(uint64{1}, step_bytes / row_bytes);
    auto* values = static_cast<uint32*>(palloc(Min(step, Max(uint64{1}, array.shape.rows)) * row_bytes));
    ReadResult read = ReadResult::done;
    for (uint64 first = 0; first < array.shape.rows && fault->what == nullptr; first += step) {
        CHECK_FOR_INTERRUPTS();
        const uint64 count = Min(step, array.shape.rows - first);
        read = read_array(index, directory, array, first * row_bytes, count * row_bytes, values);
        if (read != ReadResult::done) break;
        for (uint64 i = 0; i < count && fault->what == nullptr; ++i) {
            const char* what = find(values + i * array.shape.width, array.shape.width, first + i, directory.rows);
            if (what != nullptr) *fault = {what, array_page_block(array, (first + i) * row_bytes / page_capacity)};
        }
    }
    pfree(values);
    return read;
}

}  // namespace

ReadResult find_graph_fault(Relation index, const Directory& directory, GraphFault* fault)
{
    *fault = {nullptr, InvalidBlockNumber};
    ReadResult read = ReadResult::done;
    const StoredArray* seeds = find_array(directory, "seeds");
    const StoredArray* neighbours = find_array(directory, "neighbours");
    if (seeds != nullptr) read = find_in_array(index, directory, *seeds, fault_of_seed, fault);
    if (read == ReadResult::done && neighbours != nullptr && fault->what == nullptr) {
        read = find_in_array(index, directory, *neighbours, fault_of_row, fault);
    }
    return read;
}

}  // namespace pgwarp
