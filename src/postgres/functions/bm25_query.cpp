// bm25_query(index, words): a query whose weights come from the statistics of an index of documents.
#include <algorithm>
#include <cmath>

#include "postgres/am/element_type.h"
#include "postgres/am/methods.h"
#include "postgres/client/loader.h"
#include "postgres/fmgr_cpp.h"
#include "postgres/functions/bm25_answers.h"
#include "postgres/functions/search_target.h"
#include "postgres/settings.h"
#include "postgres/types/attribute_value.h"
#include "postgres/types/bag_value.h"
#include "postgres/types/bm25_query.h"

extern "C" {
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "miscadmin.h"
#include "tsearch/ts_type.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"
}

namespace pgwarp
{

namespace
{

// The lexemes of the words, each once; until the weights are known, `weight` is how often it occurs.
struct Lexemes {
    WeightedLexeme* items;
    uint32 count;
    uint32 capacity;
};

// Sorts by term and unites equal ones: two lexemes of one term are one to the index. Raises 54000 for too many terms.
void unite_lexemes(Lexemes* lexemes)
{
    WeightedLexeme* items = lexemes->items;
    std::sort(items, items + lexemes->count,
              [](const WeightedLexeme& a, const WeightedLexeme& b) { return a.term < b.term; });
    uint32 kept = 0;
    for (uint32 i = 0; i < lexemes->count; ++i) {
        if (kept > 0 && items[kept - 1].term == items[i].term) {
            items[kept - 1].weight += items[i].weight;
        } else {
            items[kept++] = items[i];
        }
    }
    lexemes->count = kept;
    check_lexeme_count_of_query(kept);
}

// A lexeme may come more often than a query has terms: the room is for twice as many.
void add_lexeme(Lexemes* lexemes, const char* bytes, int length, double occurrences)
{
    if (lexemes->count == 2 * max_query_terms) unite_lexemes(lexemes);
    if (lexemes->count == lexemes->capacity) {
        lexemes->capacity *= 2;
        lexemes->items = static_cast<WeightedLexeme*>(
            repalloc_huge(lexemes->items, sizeof(WeightedLexeme) * Size{lexemes->capacity}));
    }
    const uint64 term = term_of_lexeme(bytes, static_cast<Size>(length));
    lexemes->items[lexemes->count++] = {bytes, length, occurrences, term};
}

Lexemes make_lexemes()
{
    constexpr uint32 capacity = 16;
    return {static_cast<WeightedLexeme*>(palloc(sizeof(WeightedLexeme) * capacity)), 0, capacity};
}

Lexemes lexemes_of_vector(Datum value)
{
    Lexemes lexemes = make_lexemes();
    TSVector vector = DatumGetTSVector(value);
    const WordEntry* entries = ARRPTR(vector);
    for (int i = 0; i < vector->size; ++i) {
        const uint32 positions = POSDATALEN(vector, &entries[i]);
        add_lexeme(&lexemes, STRPTR(vector) + entries[i].pos, static_cast<int>(entries[i].len),
                   Max(Min(positions, most_frequency), 1U));
    }
    return lexemes;
}

void refuse_prefix(const char* word)
{
    ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED), errmsg("bm25_query() takes whole words"),
                    errdetail("\"%s:*\" is a prefix.", word), errhint("Filter by it: WHERE document @@ query.")));
}

// Adds the words of a part of a tsquery that no `!` negates. The operators between them do not count.
void add_operands(const TSQuery query, const QueryItem* item, Lexemes* lexemes)
{
    check_stack_depth();
    if (item->type == QI_OPR) {
        if (item->qoperator.oper == OP_NOT) return;
        add_operands(query, item + item->qoperator.left, lexemes);
        return add_operands(query, item + 1, lexemes);
    }
    if (item->type != QI_VAL) return;
    const char* word = GETOPERAND(query) + item->qoperand.distance;
    if (item->qoperand.prefix) refuse_prefix(pnstrdup(word, item->qoperand.length));
    add_lexeme(lexemes, word, static_cast<int>(item->qoperand.length), 1);
}

Lexemes lexemes_of_query(Datum value)
{
    Lexemes lexemes = make_lexemes();
    TSQuery query = DatumGetTSQuery(value);
    if (query->size > 0) add_operands(query, GETQUERY(query), &lexemes);
    return lexemes;
}

// Statistics of documents, summed over the partitions of an index.
struct Statistics {
    uint64 rows;
    uint64 length;
    uint64* counts;  // of each lexeme
};

// Adds the statistics of one index. `query`: the words of a query of the sorted lexemes.
void add_statistics(Relation index, const RowView& query, uint32 lexemes, Statistics* sum)
{
    const IndexState state = read_index_state(index);
    if (index_is_empty(state)) return;
    SearchRequest request;
    memset(static_cast<void*>(&request), 0, sizeof(request));
    request.mode = SearchMode::term_counts;
    request.k = 1;
    request.load_wait_ms = static_cast<uint32>(setting_load_wait_ms);
    const EngineReply reply = engine_search(index, state, &request, query);
    if (reply.payload_bytes < sizeof(SearchReply) + sizeof(uint64) * (2 + Size{lexemes})) raise_engine_lost();
    const char* at = reply.payload + sizeof(SearchReply);
    const auto next = [&at] {
        uint64 number = 0;
        memcpy(&number, at, sizeof(number));
        at += sizeof(number);
        return number;
    };
    sum->rows += next();
    sum->length += next();
    for (uint32 i = 0; i < lexemes; ++i) sum->counts[i] += next();
}

// The name of the table is the likely mistake.
void check_names_index(Oid relation)
{
    const char kind = get_rel_relkind(relation);
    const char* name = get_rel_name(relation);
    if (name == nullptr || kind == RELKIND_INDEX || kind == RELKIND_PARTITIONED_INDEX) return;
    ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE), errmsg("\"%s\" is not a pgwarp index", name),
                    errhint("Name an index of documents, with the operator class tsvector_bm25_ops.")));
}

void check_documents(Relation index)
{
    const char* name = RelationGetRelationName(index);
    if (index->rd_indam == nullptr || find_access_method(index->rd_indam->amoptions) == nullptr)
        refuse_other_relation(name);
    if (index_element_type(index) == ElementType::bag) return;
    ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE), errmsg("index \"%s\" does not rank documents", name),
                    errhint("Create one with the operator class tsvector_bm25_ops.")));
}

// Opens an index, its table before it, as other commands do. The locks stay to the end of the transaction.
Relation open_documents(Oid oid)
{
    table_close(table_open(table_of_index(oid), AccessShareLock), NoLock);
    Relation index = relation_open(oid, AccessShareLock);
    check_documents(index);
    check_usable_index(index);
    return index;
}

// The index that the caller names, or, where it is partitioned, those of all partitions. A lock of each partitioned
// table keeps its partitions from being dropped.
List* list_indexes(Oid root)
{
    check_names_index(root);
    check_may_read_index(root);
    relation_close(open_documents(root), NoLock);
    if (get_rel_relkind(root) != RELKIND_PARTITIONED_INDEX) return list_make1_oid(root);
    find_all_inheritors(table_of_index(root), AccessShareLock, nullptr);
    return find_all_inheritors(root, NoLock, nullptr);
}

Statistics read_statistics(Oid root, Lexemes* lexemes)
{
    Statistics sum = {0, 0, static_cast<uint64*>(palloc0(sizeof(uint64) * Max(lexemes->count, 1U)))};
    const Bm25Form no_form = {0, 0, 1};
    const RowView query = read_parts_row(PointerGetDatum(make_bm25_query(no_form, lexemes->items, lexemes->count)));
    ListCell* cell = nullptr;
    foreach (cell, list_indexes(root)) {
        const Oid oid = lfirst_oid(cell);
        if (get_rel_relkind(oid) == RELKIND_PARTITIONED_INDEX) continue;
        Relation index = open_documents(oid);
        add_statistics(index, query, lexemes->count, &sum);
        relation_close(index, NoLock);
    }
    return sum;
}

// The inverse document frequency of Lucene, which is never negative: ln(1 + (rows - count + 1/2) / (count + 1/2)).
double inverse_frequency(uint64 rows, uint64 count)
{
    const double others = static_cast<double>(rows - Min(count, rows));
    return std::log1p((others + 0.5) / (static_cast<double>(count) + 0.5));
}

void weigh_lexemes(const Statistics& statistics, double k1, Lexemes* lexemes)
{
    for (uint32 i = 0; i < lexemes->count; ++i) {
        double* weight = &lexemes->items[i].weight;
        *weight *= (k1 + 1) * inverse_frequency(statistics.rows, statistics.counts[i]);
        *weight = Max(least_term_weight, Min(*weight, most_term_weight));
    }
}

double average_length(const Statistics& statistics)
{
    if (statistics.rows == 0) return 1;
    return Max(1.0, static_cast<double>(statistics.length) / static_cast<double>(statistics.rows));
}

Datum query_of(FunctionCallInfo fcinfo, Lexemes (*lexemes_of)(Datum))
{
    const PartsValue* query = find_answer(fcinfo);
    if (query == nullptr) {
        const double k1 = PG_GETARG_FLOAT8(2);
        const double b = PG_GETARG_FLOAT8(3);
        check_form({k1, b, 1});
        Lexemes lexemes = lexemes_of(PG_GETARG_DATUM(1));
        unite_lexemes(&lexemes);
        const Statistics statistics = read_statistics(PG_GETARG_OID(0), &lexemes);
        weigh_lexemes(statistics, k1, &lexemes);
        const Bm25Form form = {k1, b, average_length(statistics)};
        query = keep_answer(fcinfo, make_bm25_query(form, lexemes.items, lexemes.count));
    }
    PG_RETURN_DATUM(datumCopy(PointerGetDatum(query), false, -1));
}

}  // namespace

}  // namespace pgwarp

// Arguments: the index, the words (tsvector or tsquery), k1, b.
PGWARP_FUNCTION(pgwarp_bm25_query_of_tsvector)
{
    return pgwarp::query_of(fcinfo, pgwarp::lexemes_of_vector);
}

PGWARP_FUNCTION(pgwarp_bm25_query_of_tsquery)
{
    return pgwarp::query_of(fcinfo, pgwarp::lexemes_of_query);
}
