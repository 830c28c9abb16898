// A searcher that passes the calls of every searcher to another one, for tests that change single calls. It takes no
// filters and compares no certain rows alone.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "methods/method.h"

namespace pgwarp::test
{

class ForwardingSearcher : public Searcher
{
public:
    explicit ForwardingSearcher(std::unique_ptr<Searcher> searcher) : searcher_(std::move(searcher)) {}
    void write(const std::string& array, std::uint64_t offset, std::span<const std::byte> bytes) override
    {
        searcher_->write(array, offset, bytes);
    }
    void finish_load(ThreadPool& pool) override { searcher_->finish_load(pool); }
    std::uint64_t memory_bytes() const override { return searcher_->memory_bytes(); }
    ResultKind result_kind() const override { return searcher_->result_kind(); }
    bool values_are_distances() const override { return searcher_->values_are_distances(); }
    double bound_width(const float* query) const override { return searcher_->bound_width(query); }
    bool compares_rows() const override { return searcher_->compares_rows(); }
    void compare_rows(const RowView& query, const RowView& rows, std::span<double> out) const override
    {
        searcher_->compare_rows(query, rows, out);
    }
    void search(const SearchBatch& batch, std::vector<std::vector<RowResult>>& results, ThreadPool& pool) const override
    {
        searcher_->search(batch, results, pool);
    }
    void search_exact(const SearchBatch& batch, double after_distance, std::uint32_t after_row,
                      std::vector<RowResult>& results, ThreadPool& pool) const override
    {
        searcher_->search_exact(batch, after_distance, after_row, results, pool);
    }
    double search_cost(const SearchBatch& batch) const override { return searcher_->search_cost(batch); }
    ParameterList resolved_settings(const SearchBatch& batch) const override
    {
        return searcher_->resolved_settings(batch);
    }

private:
    std::unique_ptr<Searcher> searcher_;
};

// The method with searchers that forward.
inline MethodFactory forwarding_method(MethodFactory method)
{
    method.make_searcher = [](const IndexShape& shape, const ParameterList& options,
                              std::span<const ArrayShape> arrays) -> std::unique_ptr<Searcher> {
        return std::make_unique<ForwardingSearcher>(find_method(shape.method)->make_searcher(shape, options, arrays));
    };
    return method;
}

}  // namespace pgwarp::test
