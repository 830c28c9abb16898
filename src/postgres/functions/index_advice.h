// What pgwarp_advise() knows of a column, and what it says of an index that the column could have.
#pragma once

#include "postgres/functions/advised_classes.h"
#include "postgres/functions/column_sample.h"

namespace pgwarp
{

// The engine that would build the index.
struct AdvisedEngine {
    bool reached;
    bool has_gpu;
    double memory;  // that resident indexes may take; 0: no bound
    int threads;    // of a build on the CPU
};

struct AdvisedColumn {
    Relation table;
    Form_pg_attribute attribute;
    Oid type;                   // of the column, or that a domain is over
    int declared_dimensions;    // of that type; 0: none
    const char* operator_name;  // asked for; null: the default of each method
    double rows;                // estimated, of the table with its partitions
    bool counted;               // whether VACUUM or ANALYZE has counted them, or all were sampled
    ColumnSample sample;
    AdvisedEngine engine;
};

struct IndexAdvice {
    const AdvisedClass* of;
    SampledShape sampled;
    bool known;      // the numbers below, which take dimensions of dense rows
    int dimensions;  // as SQL counts; 0 for lists, or where not known
    double rows;     // of the index
    double index_bytes;
    double engine_bytes;
    double gpu_bytes;  // 0: the CPU serves the index
    double build_seconds;
    double compared_rows;   // by a search
    double search_seconds;  // of one search
    bool is_exact;          // searches miss no row
    bool is_recommended;
};

// index_advice.cpp
IndexAdvice advise_class(const AdvisedColumn& column, const AdvisedClass* candidate);
// Marks one of the advices, or none where a sequential scan is as good.
void recommend(const AdvisedColumn& column, IndexAdvice* advices, int count);

// advice_text.cpp
// The statements that create the index.
const char* advised_statement(const AdvisedColumn& column, const IndexAdvice& advice);
// What the user should know before; an array of text.
Datum advised_warnings(const AdvisedColumn& column, const IndexAdvice& advice);

// A sequential scan of fewer rows takes about a millisecond.
inline constexpr double fewest_indexed_rows = 3000;

}  // namespace pgwarp
