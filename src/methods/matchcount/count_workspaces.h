// The workspaces of a searcher.
#pragma once

#include <mutex>
#include <vector>

#include "methods/matchcount/count_workspace.h"

namespace pgwarp::matchcount
{

// Workspaces that searches share, one after the other.
class CountWorkspaces
{
public:
    CountWorkspace take()
    {
        const std::lock_guard lock(mutex_);
        if (free_.empty()) return CountWorkspace();
        CountWorkspace taken = std::move(free_.back());
        free_.pop_back();
        return taken;
    }
    void give_back(CountWorkspace workspace)
    {
        const std::lock_guard lock(mutex_);
        free_.push_back(std::move(workspace));
    }

private:
    std::mutex mutex_;
    std::vector<CountWorkspace> free_;
};

}  // namespace pgwarp::matchcount
