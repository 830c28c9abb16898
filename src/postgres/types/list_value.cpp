// The table of SQL types whose rows are lists.
#include "postgres/types/list_value.h"

#include "postgres/types/attribute_value.h"
#include "postgres/types/text_row.h"
#include "postgres/types/text_value.h"

namespace pgwarp
{

namespace
{

constexpr ListType list_types[] = {
    {.element = ElementType::text,
     .type = InvalidOid,
     .width = 64,
     .read_row = read_text_row,
     .read_query = read_text_row,
     .can_read_query = can_read_text,
     .distance = text_row_distance},
    {.element = ElementType::attribute_set,
     .type = InvalidOid,
     .width = 64,
     .read_row = read_parts_row,
     .read_query = read_parts_row,
     .can_read_query = can_read_parts,
     .distance = attributes_row_distance},
};

}  // namespace

const ListType* find_list_type(ElementType element, Oid type)
{
    for (const ListType& known : list_types) {
        if (known.element == element && (known.type == type || known.type == InvalidOid)) return &known;
    }
    return nullptr;
}

RowView one_list_row(const uint32* words, uint32 count)
{
    auto* offsets = static_cast<uint64*>(palloc(sizeof(uint64) * 2));
    offsets[0] = 0;
    offsets[1] = count;
    RowView row;
    row.count = 1;
    row.offsets = offsets;
    row.words = words;
    return row;
}

}  // namespace pgwarp
