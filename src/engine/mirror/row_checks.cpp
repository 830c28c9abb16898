#include "engine/mirror/row_checks.h"

#include <string>

#include "engine/mirror/vectors.h"
#include "methods/errors.h"

namespace pgwarp
{

namespace
{

void check_lists(const IndexShape& shape, const RowView& rows)
{
    const char* fault = lists_fault(rows, shape);
    if (fault != nullptr) throw BadRequest(fault);
}

// Checks queries of another form than rows.
void check_listed_queries(const RowView& queries, const char* (*fault_of)(std::span<const std::uint32_t> words))
{
    for (std::size_t i = 0; i < queries.count; ++i) {
        if (queries.list(i).size() > max_list_words) throw BadRequest("query with too many items");
        const char* fault = fault_of(queries.list(i));
        if (fault != nullptr) throw BadRequest(fault);
    }
}

}  // namespace

void check_rows(const IndexShape& shape, const RowView& rows)
{
    if (rows.layout() != row_layout(shape.element)) throw BadRequest("rows of another kind than the index's");
    if (rows.attribute_count != shape.attribute_count) throw BadRequest("rows with other attributes than the index's");
    if (rows.offsets != nullptr) return check_lists(shape, rows);
    if (rows.count > 0 && rows.width != shape.dimensions) throw BadRequest("rows of another number of dimensions");
}

void check_query_rows(const IndexShape& shape, const RowView& queries)
{
    if (queries.layout() != row_layout(shape.element))
        throw BadRequest("query of another kind than the rows of the index");
    if (shape.element == ElementType::attribute_set) return check_listed_queries(queries, attribute_query_fault);
    if (shape.element == ElementType::bag) return check_listed_queries(queries, bag_query_fault);
    if (queries.offsets != nullptr) return check_lists(shape, queries);
    if (queries.width != shape.dimensions) {
        throw BadRequest("query of " + std::to_string(queries.width) + " dimensions for an index of " +
                         std::to_string(shape.dimensions));
    }
    check_queries(static_cast<Metric>(shape.metric), queries.dense());
}

}  // namespace pgwarp
