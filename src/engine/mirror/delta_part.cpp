// Parts of the delta: their recipe, the plan of the next one, and its making.
#include "engine/mirror/delta_part.h"

#include <algorithm>
#include <cstring>

#include "engine/mirror/listed_rows.h"
#include "methods/arrays.h"
#include "methods/recall/searches.h"

namespace pgwarp
{

namespace
{

// A part is taken into the next one unless it has this many times the rows: so a row moves few times, and parts are
// few.
constexpr std::uint64_t growth = 8;

// The same on a device, where a search takes about as long in a part of any size.
constexpr std::uint64_t growth_on_device = 256;

// The exact method of a device for parts, where it takes these rows: copying makes the parts, a search of them leaves
// no row out, and the device searches them beside the index. Null: the parts are others.
const MethodFactory* exact_parts_of(const MethodFactory& method, const IndexShape& shape)
{
    if (method.exact_parts == nullptr || !device_serves(*method.exact_parts, shape)) return nullptr;
    const MethodDescription* exact = find_description(method.exact_parts->method);
    return exact != nullptr && takes_elements(*exact, shape.element) ? method.exact_parts : nullptr;
}

const MethodFactory* method_of_parts(const MethodFactory& method, const IndexShape& shape, std::uint64_t rows)
{
    if (const MethodFactory* exact = exact_parts_of(method, shape)) return exact;
    const MethodFactory* known = find_method(method.method);
    if (known == nullptr || known->part_options == nullptr || known->make_merge_builder == nullptr) return nullptr;
    const bool makes_parts = known->part_elements.has(shape.element);
    if (makes_parts && known->part_array == nullptr) return &method;
    if (makes_parts && rows > 0) return known;
    // An index that was built without rows lacks that array: a complete method searches its delta rows.
    const MethodDescription* complete = complete_description(shape.element);
    return complete != nullptr ? find_method(complete->method) : nullptr;
}

// The name of the array that has a role in the method of parts; may be null.
const char* array_of_parts(const PartRecipe& recipe, ArrayRole role)
{
    const MethodDescription* description = find_description(recipe.method->method);
    return description != nullptr ? array_name(*description, role) : nullptr;
}

// Fills in the rows of a part's spans.
void collect_rows(const LogViews& logs, DeltaPart& part)
{
    for (std::uint32_t log = 0; log < delta_log_count; ++log) {
        const LogSpan& span = part.spans[log];
        for_each_chunk(logs[log], span.begin, [&](std::uint64_t position, const Tid* tids, const RowView& rows) {
            for (std::size_t i = 0; i < rows.count && position + i < span.end; ++i) {
                part.rows.push_back({rows.row(i).values, delta_ordinal(log, position + i), tids[i]});
                if (rows.offsets == nullptr) continue;
                part.list_rows.push_back(rows.row(i));
                part.list_rows.back().attribute_count = 0;
            }
        });
    }
}

// Copies the rows of a part for a builder.
void fill_buffer(const DeltaPart& part, std::size_t dimensions, RowBuffer& buffer)
{
    for (std::size_t i = 0; i < part.rows.size(); ++i) {
        const DeltaEntry& row = part.rows[i];
        if (part.list_rows.empty()) {
            buffer.append({&row.tid, 1}, {row.vector, dimensions});
        } else {
            buffer.append({&row.tid, 1}, part.list_rows[i]);
        }
    }
}

// Loads rows [first, first + count), each contiguous run in a chunk by one write.
void write_rows(const std::vector<DeltaEntry>& rows, std::uint64_t first, std::uint64_t count, std::size_t dimensions,
                const char* array, Searcher& searcher)
{
    const std::size_t row_bytes = dimensions * sizeof(float);
    for (std::uint64_t done = 0; done < count;) {
        const float* from = rows[first + done].vector;
        std::uint64_t run = 1;
        while (done + run < count && rows[first + done + run].vector == from + run * dimensions) ++run;
        searcher.write(array, (first + done) * row_bytes, std::as_bytes(std::span(from, run * dimensions)));
        done += run;
    }
}

// Loads the rows of an exact part. Rows of the replaced parts are copied on the device.
void load_rows(const DeltaPart& part, std::span<const DeltaPartPtr> replaced, std::size_t dimensions, const char* array,
               Searcher& searcher)
{
    std::vector<std::uint64_t> taken(replaced.size(), 0);  // rows copied of each
    std::uint64_t to = 0;
    for (std::size_t log = 0; log < delta_log_count; ++log) {
        const std::uint64_t end = to + part.spans[log].rows();
        for (std::size_t i = 0; i < replaced.size(); ++i) {
            const std::uint64_t count = replaced[i]->spans[log].rows();
            if (count > 0 && !searcher.copy_rows(*replaced[i]->searcher, taken[i], count, to))
                write_rows(part.rows, to, count, dimensions, array, searcher);
            taken[i] += count;
            to += count;
        }
        write_rows(part.rows, to, end - to, dimensions, array, searcher);
        to = end;
    }
}

// Makes the searcher of an exact part.
void make_exact_searcher_of(DeltaPart& part, const PartRecipe& recipe, std::span<const DeltaPartPtr> replaced,
                            ThreadPool& pool)
{
    const std::size_t dimensions = recipe.shape.dimensions;
    const char* vectors = array_of_parts(recipe, ArrayRole::vectors);
    const std::vector<ArrayShape> arrays = {
        make_array_shape(vectors, ArrayType::f32, part.rows.size(), recipe.shape.dimensions)};
    part.searcher = recipe.method->make_searcher(recipe.shape, recipe.options, arrays);
    part.proposes_values = true;
    part.on_device = true;
    load_rows(part, replaced, dimensions, vectors, *part.searcher);
    part.searcher->finish_load(pool);
}

// The lists of the planned rows, as far as parts know them; else no_list.
std::vector<std::uint32_t> known_lists(const PartPlan& plan, std::span<const DeltaPartPtr> parts)
{
    std::vector<std::uint32_t> lists(plan.rows, no_list);
    for (const DeltaPartPtr& part : parts) {
        std::size_t from = 0;
        std::size_t to = 0;
        for (std::size_t log = 0; log < delta_log_count; ++log) {
            const std::size_t count = part->spans[log].rows();
            if (count > 0 && !part->lists.empty()) {
                const std::size_t first = to + (part->spans[log].begin - plan.spans[log].begin);
                std::copy_n(part->lists.begin() + static_cast<std::ptrdiff_t>(from), count,
                            lists.begin() + static_cast<std::ptrdiff_t>(first));
            }
            from += count;
            to += plan.spans[log].rows();
        }
    }
    return lists;
}

}  // namespace

std::uint64_t DeltaPart::memory_bytes() const
{
    return rows.size() * sizeof(DeltaEntry) + list_rows.size() * sizeof(RowView) +
           lists.size() * sizeof(std::uint32_t) + searcher->memory_bytes();
}

std::vector<std::uint64_t> DeltaPart::dead_rows(
    const std::array<std::vector<std::uint64_t>, delta_log_count>& entries) const
{
    std::vector<std::uint64_t> bits;
    std::size_t first = 0;
    for (std::size_t log = 0; log < delta_log_count; ++log) {
        const LogSpan& span = spans[log];
        auto at = std::lower_bound(entries[log].begin(), entries[log].end(), span.begin);
        for (; at != entries[log].end() && *at < span.end; ++at) {
            bits.resize((rows.size() + 63) / 64);
            const std::size_t row = first + (*at - span.begin);
            bits[row / 64] |= std::uint64_t{1} << (row % 64);
        }
        first += span.rows();
    }
    return bits;
}

PartRecipe::PartRecipe(const IndexShape& given, const ParameterList& effective, std::uint64_t rows,
                       std::span<const ArrayShape> arrays, const MethodFactory& used)
    : shape(given), method(method_of_parts(used, given, rows)), exact_on_device(exact_parts_of(used, given) != nullptr)
{
    if (!possible()) return;
    shape.method = method->method;
    shape.attribute_count = 0;  // those of delta rows stay in the logs
    if (shape.element == ElementType::float16) shape.element = ElementType::float32;  // as the rows arrive
    const MethodFactory& known = *find_method(method->method);
    const ArrayShape* array = known.part_array != nullptr ? find_array(arrays, known.part_array) : nullptr;
    if (known.part_array != nullptr && array == nullptr)
        throw BadRequest("array \"" + std::string(known.part_array) + "\" is missing");
    options = known.part_options(shape, method->method == used.method ? effective : ParameterList(), array);
    if (array == nullptr) return;
    shared.push_back(*array);
    shared_bytes.resize(array->bytes());
}

bool PartRecipe::takes(const ArrayShape& array) const
{
    return !shared.empty() && std::strcmp(array.name, shared.front().name) == 0;
}

PartPlan plan_part(const PartRecipe& recipe, const LogViews& logs, const std::vector<DeltaPartPtr>& parts)
{
    const std::uint64_t times = recipe.exact_on_device ? growth_on_device : growth;
    PartPlan plan;
    for (std::size_t log = 0; log < delta_log_count; ++log) {
        plan.spans[log] = {logs[log].start, logs[log].end};
        if (!parts.empty() && logs[log].known)
            plan.spans[log].begin = std::max(logs[log].start, parts.back()->spans[log].end);
        plan.rows += plan.spans[log].rows();
    }
    plan.kept = parts.size();
    while (plan.kept > 0 && parts[plan.kept - 1]->rows.size() < times * plan.rows) {
        --plan.kept;
        for (std::size_t log = 0; log < delta_log_count; ++log) {
            plan.rows += parts[plan.kept]->spans[log].rows();
            plan.spans[log].begin -= parts[plan.kept]->spans[log].rows();
        }
    }
    return plan;
}

std::uint64_t part_bytes(const PartRecipe& recipe, const LogViews& logs, const PartPlan& plan)
{
    if (is_list(recipe.shape.element)) {
        // The size of the logs is the estimate for lists.
        std::uint64_t bytes = plan.rows * (sizeof(DeltaEntry) + sizeof(RowView));
        for (const DeltaView& log : logs) bytes += log.bytes();
        return bytes;
    }
    // Per dimension, a float and a half of an exact index, or a byte of an inverted file; 64 bytes for each row.
    const std::uint64_t width = recipe.shape.dimensions * (recipe.shared.empty() ? 6U : 1U);
    return plan.rows * (width + 64) + 2 * recipe.shared_bytes.size();
}

DeltaPartPtr make_part(const PartRecipe& recipe, const LogViews& logs, const PartPlan& plan,
                       std::span<const DeltaPartPtr> parts, ThreadPool& pool)
{
    const std::size_t dimensions = recipe.shape.dimensions;
    auto part = std::make_shared<DeltaPart>();
    part->spans = plan.spans;
    collect_rows(logs, *part);
    if (recipe.exact_on_device) {
        make_exact_searcher_of(*part, recipe, parts.subspan(plan.kept), pool);
        return part;
    }
    RowBuffer rows(recipe.shape);
    fill_buffer(*part, dimensions, rows);

    const auto builder = find_method(recipe.method->method)->make_merge_builder(recipe.shape, recipe.options);
    for (const ArrayShape& array : recipe.shared) builder->give(array, 0, recipe.shared_bytes);
    const char* list_of_row = array_of_parts(recipe, ArrayRole::list_of_row);
    if (list_of_row != nullptr) {
        const std::vector<std::uint32_t> lists = known_lists(plan, parts.subspan(plan.kept));
        builder->give(make_array_shape(list_of_row, ArrayType::u32, plan.rows, 1), 0, std::as_bytes(std::span(lists)));
    }
    builder->run(rows, {[](const char*, std::uint64_t, std::uint64_t) {}, nullptr}, pool);

    std::vector<ArrayShape> arrays = recipe.shared;
    for (const ArrayShape& array : builder->arrays()) {
        arrays.push_back(array);
        if (list_of_row == nullptr || std::strcmp(array.name, list_of_row) != 0) continue;
        part->lists.resize(array.rows);
        builder->read(array.name, 0, std::as_writable_bytes(std::span(part->lists)));
    }
    const std::uint64_t lists = recipe.shared.empty() ? 0 : recipe.shared.front().rows;
    if (!part->lists.empty() && plan.rows <= few_rows_of_list * lists) {
        part->searcher = make_listed_rows(recipe.shape, effort_parameter(*find_description(recipe.shape.method)),
                                          part->rows, part->lists, lists);
        return part;
    }
    part->searcher = recipe.method->make_searcher(recipe.shape, recipe.options, arrays);
    for (const ArrayShape& array : recipe.shared) part->searcher->write(array.name, 0, recipe.shared_bytes);
    feed_searcher(*builder, *part->searcher, pool);
    return part;
}

}  // namespace pgwarp
