// Makes bags of documents, and scores them.
#include "postgres/types/bag_value.h"

#include <algorithm>

#include "postgres/types/list_row.h"

extern "C" {
#include "common/hashfn.h"
#include "tsearch/ts_type.h"
}

namespace pgwarp
{

namespace
{

void check_lexeme_count(int count)
{
    if (count <= static_cast<int>(max_bag_terms)) return;
    ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("document of %d lexemes is too large", count),
                    errdetail("It may have %u.", max_bag_terms),
                    errhint("Index its parts, or an expression that leaves out lexemes.")));
}

// Sorts the numbers of terms with their frequencies, and unites those of equal terms. Returns how many remain.
Size unite_terms(uint64* numbers, Size count)
{
    std::sort(numbers, numbers + count);
    Size kept = 0;
    for (Size i = 0; i < count; ++i) {
        if (kept == 0 || term_of(numbers[kept - 1]) != term_of(numbers[i])) {
            numbers[kept++] = numbers[i];
            continue;
        }
        const uint32 both = frequency_of(numbers[kept - 1]) + frequency_of(numbers[i]);
        numbers[kept - 1] = term_of(numbers[i]) << frequency_bits | Min(both, most_frequency);
    }
    return kept;
}

}  // namespace

uint64 term_of_lexeme(const char* bytes, Size length)
{
    return term_of(hash_bytes_extended(reinterpret_cast<const unsigned char*>(bytes), static_cast<int>(length), 0));
}

RowView read_bag_row(Datum document)
{
    TSVector vector = DatumGetTSVector(document);
    check_lexeme_count(vector->size);
    const WordEntry* entries = ARRPTR(vector);
    const auto size = static_cast<Size>(vector->size);
    auto* numbers = static_cast<uint64*>(palloc(sizeof(uint64) * Max(size, Size{1})));
    for (Size i = 0; i < size; ++i) {
        const uint32 positions = POSDATALEN(vector, &entries[i]);
        const uint64 term = term_of_lexeme(STRPTR(vector) + entries[i].pos, entries[i].len);
        numbers[i] = term << frequency_bits | Max(Min(positions, most_frequency), 1U);
    }
    if (reinterpret_cast<Pointer>(vector) != DatumGetPointer(document)) pfree(vector);
    const Size count = unite_terms(numbers, size);
    auto* words = static_cast<uint32*>(palloc(sizeof(uint32) * bag_words * Max(count, Size{1})));
    for (Size i = 0; i < count; ++i) write_part_number(numbers[i], words + i * bag_words);
    pfree(numbers);
    return one_list_row(words, static_cast<uint32>(count * bag_words));
}

double bag_row_distance(Metric, const RowView& query, Datum document)
{
    const RowView row = read_bag_row(document);
    const double distance = distance_of_score(score_of_bag(query.list(0), row.list(0)));
    pfree(const_cast<uint32*>(row.words));
    pfree(const_cast<uint64*>(row.offsets));
    return distance;
}

}  // namespace pgwarp
