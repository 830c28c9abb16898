// Makes rows of attributes, and compares them with queries.
#include "postgres/types/attribute_value.h"

#include "postgres/types/attributes.h"
#include "postgres/types/list_row.h"

namespace pgwarp
{

RowView read_parts_row(Datum value)
{
    const PartsValue* parts = read_parts(value);
    auto* words = static_cast<uint32*>(palloc(sizeof(uint32) * Max(parts->word_count, 1)));
    memcpy(words, parts->words, sizeof(uint32) * parts->word_count);
    const RowView row = one_list_row(words, parts->word_count);
    free_parts(parts, value);
    return row;
}

bool can_read_parts(Datum)
{
    return true;
}

double attributes_row_distance(Metric, const RowView& query, Datum attributes)
{
    const PartsValue* parts = read_parts(attributes);
    const uint32 count = count_matches(query.list(0), parts->parts());
    free_parts(parts, attributes);
    return overlap_distance(count);
}

}  // namespace pgwarp
