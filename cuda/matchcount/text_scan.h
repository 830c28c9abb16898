// The search of texts on the device, as launches. Where the CPU finds candidates by grams (text_search.h), the device
// bounds the distance of every text of a near length by the numbers of its characters (character_counts.h), which takes
// a few instructions, and compares those that the bound leaves.
//
// A search has these steps: survey() counts the bounds of a sample of live texts. compare(near) compares the texts of
// the smallest bounds; the k-th distance so far is the limit. compare(rest) compares the others whose bound is at most
// the limit, nearest lengths first; the limit falls with the k-th distance. finish() writes the k first results. A
// search of one round leaves out compare(rest).
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "device/answers.h"
#include "device/context.h"
#include "matchcount/text_launches.h"
#include "matchcount/text_view.h"

namespace pgwarp::cuda
{

// All enqueue. `longest`: the characters of the longest query. Throw CudaError.
void prepare_text_queries(const TextQueries& queries, cudaStream_t stream);
void survey_texts(const Context& context, const TextsView& texts, const TextQueries& queries, cudaStream_t stream);
// Before the launches of the step `rest`: all of them go over the same texts, whatever the limits become meanwhile.
void set_windows(const TextQueries& queries, cudaStream_t stream);
void compare_texts(const Context& context, TextStep step, const TextsView& texts, const TextQueries& queries,
                   const TextLaunch& launch, std::uint32_t longest, cudaStream_t stream);
// The answers [count][k] are unordered. found[query] is no_answer where the query has more results of equal distance
// than there was room for.
void finish_texts(const TextQueries& queries, const Answers& answers, cudaStream_t stream);

}  // namespace pgwarp::cuda
