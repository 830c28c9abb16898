// Packs text, and compares packed text.
#include "postgres/types/text_row.h"

#include "numeric/text_pattern.h"
#include "postgres/types/list_row.h"
#include "postgres/types/text_value.h"

extern "C" {
#include "miscadmin.h"
}

namespace pgwarp
{

static void check_interrupts(void*)
{
    CHECK_FOR_INTERRUPTS();
}

const EditPoll interrupt_poll = {check_interrupts, nullptr};

RowView read_text_row(Datum value)
{
    const TextValue text = read_text(value);
    uint32 count = 0;
    const uint32* words = pack_text_value(text, &count);
    free_text(text);
    return one_list_row(words, count);
}

double text_row_distance(Metric metric, const RowView& query, Datum value)
{
    const TextView pattern = view_text(query.list(0));
    const TextValue text = read_text(value);
    auto* memory = static_cast<uint64*>(palloc(sizeof(uint64) * TextPattern::memory_words(metric, pattern)));
    const TextPattern prepared(metric, pattern, memory);
    const double distance = prepared.distance(text.characters, interrupt_poll);
    pfree(memory);
    free_text(text);
    return distance;
}

}  // namespace pgwarp
