// Reads seeds, links and their changes, and searches the graph.
#include "postgres/check/link_structure.h"

#include "postgres/am/methods.h"
#include "postgres/storage/array_role.h"

extern "C" {
#include "miscadmin.h"
}

namespace pgwarp
{

namespace
{

constexpr uint64 step_bytes = 4U << 20;

// A change of a link, and its number in the array of changes.
struct Change {
    uint32 row;
    uint32 place;
    uint32 neighbour;
    uint32 number;
};

// All changes, sorted by row, and the position of the next one.
struct Changes {
    Change* items;
    uint64 count;
    uint64 next;
    uint32* links;  // all links, [rows][degree]; null when they need too much memory
};

int compare_changes(const void* a, const void* b)
{
    const auto* left = static_cast<const Change*>(a);
    const auto* right = static_cast<const Change*>(b);
    if (left->row != right->row) return left->row < right->row ? -1 : 1;
    return left->number < right->number ? -1 : 1;
}

bool is_u32(const StoredArray& array, LinkFault* fault)
{
    if (array.shape.type == ArrayType::u32 && array.shape.width > 0) return true;
    *fault = {"an array has another shape than the method's", array_page_block(array, 0)};
    return false;
}

using VisitRow = const char* (*)(void* state, uint32* values, uint64 width, uint64 row, uint64 rows);

// Passes each row of an array to `visit`, which returns a description of a fault, or null.
ReadResult visit_array(Relation index, const Directory& directory, const StoredArray& array, VisitRow visit,
                       void* state, LinkFault* fault)
{
    if (!is_u32(array, fault)) return ReadResult::done;
    const uint64 row_bytes = array.shape.width * sizeof(uint32);
    const uint64 step = Max(uint64{1}, step_bytes / row_bytes);
    auto* values = static_cast<uint32*>(palloc(Min(step, Max(uint64{1}, array.shape.rows)) * row_bytes));
    ReadResult read = ReadResult::done;
    for (uint64 first = 0; first < array.shape.rows && fault->what == nullptr; first += step) {
        CHECK_FOR_INTERRUPTS();
        const uint64 count = Min(step, array.shape.rows - first);
        read = read_array(index, directory, array, first * row_bytes, count * row_bytes, values);
        if (read != ReadResult::done) break;
        for (uint64 i = 0; i < count && fault->what == nullptr; ++i) {
            const char* what =
                visit(state, values + i * array.shape.width, array.shape.width, first + i, directory.rows);
            if (what != nullptr) *fault = {what, array_page_block(array, (first + i) * row_bytes / page_capacity)};
        }
    }
    pfree(values);
    return read;
}

const char* visit_seed(void*, uint32* seed, uint64, uint64, uint64 rows)
{
    return *seed < rows ? nullptr : "a seed is a row that does not exist";
}

const char* take_change(void* state, uint32* values, uint64 width, uint64 row, uint64 rows)
{
    auto* changes = static_cast<Changes*>(state);
    if (width != 3) return "an array has another shape than the method's";
    if (values[0] >= rows) return "an edge of a row is changed that does not exist";
    changes->items[changes->count++] = {values[0], values[1], values[2], static_cast<uint32>(row)};
    return nullptr;
}

// Applies the changes of a row to its edges, and checks these.
const char* visit_neighbours(void* state, uint32* neighbours, uint64 degree, uint64 row, uint64 rows)
{
    auto* changes = static_cast<Changes*>(state);
    for (; changes->next < changes->count && changes->items[changes->next].row == row; ++changes->next) {
        const Change& change = changes->items[changes->next];
        if (change.place >= degree) return "an edge is changed that does not exist";
        const bool empties = change.neighbour == no_link;
        for (uint64 place = change.place; place < (empties ? degree : change.place + 1); ++place) {
            neighbours[place] = change.neighbour;
        }
    }
    if (changes->links != nullptr) memcpy(changes->links + row * degree, neighbours, degree * sizeof(uint32));
    uint64 count = 0;
    while (count < degree && neighbours[count] != no_link) ++count;
    for (uint64 i = count; i < degree; ++i) {
        if (neighbours[i] != no_link) return "a row has a neighbour after an unused place";
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

// Whether every live row can be reached from this one. The links were checked to lead to rows.
bool all_are_reached(const uint32* links, uint64 degree, uint64 rows, const uint64* dead, uint32 from)
{
    const uint64 words = (rows + 63) / 64;
    auto* reached = static_cast<uint64*>(
        MemoryContextAllocExtended(CurrentMemoryContext, words * sizeof(uint64), MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO));
    auto* queue = static_cast<uint32*>(MemoryContextAllocHuge(CurrentMemoryContext, rows * sizeof(uint32)));
    uint64 count = 0;
    queue[count++] = from;
    reached[from / 64] |= uint64{1} << (from % 64);
    for (uint64 next = 0; next < count; ++next) {
        if (next % 65536 == 0) CHECK_FOR_INTERRUPTS();
        const uint32* own = links + queue[next] * degree;
        for (uint64 i = 0; i < degree && own[i] != no_link; ++i) {
            const uint64 bit = uint64{1} << (own[i] % 64);
            if ((reached[own[i] / 64] & bit) != 0) continue;
            reached[own[i] / 64] |= bit;
            queue[count++] = own[i];
        }
    }
    bool all = true;
    for (uint64 row = 0; row < rows && all; ++row)
        all = (((reached[row / 64] | dead[row / 64]) >> (row % 64)) & 1) != 0;
    pfree(queue);
    pfree(reached);
    return all;
}

uint32* room_for_links(const StoredArray& neighbours)
{
    if (neighbours.shape.bytes() > static_cast<uint64>(maintenance_work_mem) * 1024) return nullptr;
    return static_cast<uint32*>(MemoryContextAllocHuge(CurrentMemoryContext, neighbours.shape.bytes() + 1));
}

}  // namespace

ReadResult find_link_fault(Relation index, const Directory& directory, const uint64* dead, LinkFault* fault)
{
    *fault = {nullptr, InvalidBlockNumber};
    ReadResult read = ReadResult::done;
    const MethodDescription& method = access_method_of(index);
    const StoredArray* seeds = find_array(directory, method, ArrayRole::link_seeds);
    const StoredArray* neighbours = find_array(directory, method, ArrayRole::links);
    const StoredArray* stored_changes = find_array(directory, method, ArrayRole::link_changes);
    Changes changes = {};
    if (seeds != nullptr) read = visit_array(index, directory, *seeds, visit_seed, nullptr, fault);
    if (stored_changes != nullptr && read == ReadResult::done && fault->what == nullptr) {
        changes.items = static_cast<Change*>(
            MemoryContextAllocHuge(CurrentMemoryContext, sizeof(Change) * (stored_changes->shape.rows + 1)));
        read = visit_array(index, directory, *stored_changes, take_change, &changes, fault);
        if (changes.count > 0) qsort(changes.items, changes.count, sizeof(Change), compare_changes);
    }
    if (neighbours != nullptr && read == ReadResult::done && fault->what == nullptr) {
        const bool reaches = dead != nullptr && seeds != nullptr && seeds->shape.rows > 0;
        changes.links = reaches ? room_for_links(*neighbours) : nullptr;
        read = visit_array(index, directory, *neighbours, visit_neighbours, &changes, fault);
    }
    uint32 first = 0;
    if (changes.links != nullptr && read == ReadResult::done && fault->what == nullptr) {
        read = read_array(index, directory, *seeds, 0, sizeof(first), &first);
        if (read == ReadResult::done && neighbours->shape.rows == directory.rows &&
            !all_are_reached(changes.links, neighbours->shape.width, directory.rows, dead, first)) {
            *fault = {"no edges lead to a row", array_page_block(*neighbours, 0)};
        }
    }
    if (changes.links != nullptr) pfree(changes.links);
    if (changes.items != nullptr) pfree(changes.items);
    return read;
}

}  // namespace pgwarp
