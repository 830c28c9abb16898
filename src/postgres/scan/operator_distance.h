// The distances of another extension's operator, by which an index on that extension's type orders its rows. The engine
// knows canonical distances. They bound the operator's, which computes in float32 (numeric/float32_distance.h). Where
// bounds of rows overlap, the operator itself is called with the heap's rows, so rows come in its own order.
#pragma once

#include "postgres/postgres_headers.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "numeric/float32_distance.h"
#include "postgres/scan/heap_distance.h"

namespace pgwarp
{

// The operator of a scan, and its query. Allocated in the memory of the whole scan.
struct OperatorDistance {
    FmgrInfo function;
    Oid collation;
    bool has_norms;
    NormRange norms;  // of the rows that the scan's snapshot sees; read once
    Datum query;      // in the memory of the rescan
    Float32Distance bounds;
    bool nans_first;  // rows come in an order in which NaN is before every number
};

// The operator of the index's operator class; null where it returns canonical distances.
OperatorDistance* open_operator_distance(Relation index, const KeyType& key);

// Returns the most terms of the sums of which a distance to the query is made.
std::size_t summed_terms(Relation index, Metric metric, const RowView& query);

// Copies the query to the current memory context. `row`: the same query as a row.
void set_operator_query(OperatorDistance* distance, Relation index, Metric metric, const RowView& row, Datum query);

// Calls the operator for the visible row at `tid`; false when there is none.
bool fetch_operator_distance(HeapReader* reader, Tid tid, OperatorDistance* distance, double* value);

// The place of an operator's distance among others: PostgreSQL sorts NaN after every number, and after infinity, or
// before all of them where the order is reversed. Numbers of such operators fit into a float.
inline double order_of(double distance, bool nans_first)
{
    constexpr double infinity = std::numeric_limits<double>::infinity();
    constexpr double most = std::numeric_limits<double>::max();
    if (std::isnan(distance)) return nans_first ? -infinity : infinity;
    return std::clamp(distance, -most, most);
}

// Whether a row that has a canonical distance may come before all others, since the operator finds NaN for it.
inline bool may_lead(const OperatorDistance* distance)
{
    return distance != nullptr && distance->nans_first && distance->bounds.may_be_nan();
}

}  // namespace pgwarp
