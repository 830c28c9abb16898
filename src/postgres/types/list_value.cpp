// The table of SQL types whose rows are lists.
#include "postgres/types/list_value.h"

#include "postgres/types/attribute_value.h"
#include "postgres/types/bag_value.h"
#include "postgres/types/set_value.h"
#include "postgres/types/sparse_row.h"
#include "postgres/types/text_row.h"
#include "postgres/types/text_value.h"

extern "C" {
#include "catalog/pg_type.h"
}

namespace pgwarp
{

namespace
{

// Rows of sets, whose queries are of the same type.
template <SetKind kind>
constexpr ListType list_of_sets(ElementType element, Oid type, double width)
{
    using Sets = SetsOf<kind>;
    return {.element = element,
            .type = type,
            .width = width,
            .read_row = Sets::read_row,
            .read_query = Sets::read_row,
            .can_read_query = Sets::can_read,
            .distance = Sets::row_distance};
}

constexpr ListType list_types[] = {
    {.element = ElementType::text,
     .type = InvalidOid,
     .width = 64,
     .read_row = read_text_row,
     .read_query = read_text_row,
     .can_read_query = can_read_text,
     .distance = text_row_distance},
    list_of_sets<SetKind::array>(ElementType::set, INT2ARRAYOID, 8),
    list_of_sets<SetKind::array>(ElementType::set, INT4ARRAYOID, 8),
    list_of_sets<SetKind::array>(ElementType::set, INT8ARRAYOID, 8),
    list_of_sets<SetKind::array>(ElementType::set, TEXTARRAYOID, 8),
    list_of_sets<SetKind::array>(ElementType::set, VARCHARARRAYOID, 8),
    list_of_sets<SetKind::lexemes>(ElementType::set, TSVECTOROID, 32),
    list_of_sets<SetKind::array>(ElementType::minhash_set, INT2ARRAYOID, 8),
    list_of_sets<SetKind::array>(ElementType::minhash_set, INT4ARRAYOID, 8),
    list_of_sets<SetKind::array>(ElementType::minhash_set, INT8ARRAYOID, 8),
    list_of_sets<SetKind::array>(ElementType::minhash_set, TEXTARRAYOID, 8),
    list_of_sets<SetKind::array>(ElementType::minhash_set, VARCHARARRAYOID, 8),
    list_of_sets<SetKind::lexemes>(ElementType::minhash_set, TSVECTOROID, 32),
    {.element = ElementType::bag,
     .type = TSVECTOROID,
     .width = 128,
     .read_row = read_bag_row,
     .read_query = read_parts_row,
     .can_read_query = can_read_parts,
     .distance = bag_row_distance},
    {.element = ElementType::attribute_set,
     .type = InvalidOid,
     .width = 64,
     .read_row = read_parts_row,
     .read_query = read_parts_row,
     .can_read_query = can_read_parts,
     .distance = attributes_row_distance},
    {.element = ElementType::sparse,
     .type = InvalidOid,
     .width = 256,
     .read_row = read_sparse_row,
     .read_query = read_sparse_row,
     .can_read_query = can_read_sparse,
     .distance = sparse_row_distance,
     .dimensions = sparse_dimensions},
};

}  // namespace

const ListType* find_list_type(ElementType element, Oid type)
{
    for (const ListType& known : list_types) {
        if (known.element == element && (known.type == type || known.type == InvalidOid)) return &known;
    }
    return nullptr;
}

}  // namespace pgwarp
